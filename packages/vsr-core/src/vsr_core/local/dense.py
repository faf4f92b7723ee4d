"""Dense modules after pooling: ``activation(x @ weight.T + bias)``, read from safetensors without a framework."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..contract import DenseSpec, FloatArray
from ..errors import CheckpointError

__all__ = ["DenseModule", "apply_dense", "load_dense"]

_DTYPES = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
_ERF = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class DenseModule:
    """One dense module: ``weight`` is float32 ``[out, in]``, ``bias`` float32 ``[out]`` or None."""

    spec: DenseSpec
    weight: FloatArray
    bias: FloatArray | None

    def __call__(self, vectors: FloatArray) -> FloatArray:
        """Map float32 ``[n, in]`` to float32 ``[n, out]``."""
        result = vectors @ self.weight.T
        if self.bias is not None:
            result += self.bias
        return _activate(result, self.spec)


def apply_dense(vectors: FloatArray, modules: Sequence[DenseModule]) -> FloatArray:
    """Run vectors ``[n, d]`` through the modules in order."""
    for module in modules:
        vectors = module(vectors)
    return vectors


def load_dense(folder: Path, specs: Sequence[DenseSpec]) -> tuple[DenseModule, ...]:
    """Read the weights of dense modules; a spec's path is a file, or a folder with ``model.safetensors`` in it.

    :param folder: what the paths of the specs are relative to.
    :raises CheckpointError: a file is missing, is no safetensors file, or its tensors do not fit the spec.
    """
    return tuple(_load_one(folder, spec) for spec in specs)


def _load_one(folder: Path, spec: DenseSpec) -> DenseModule:
    file = folder / spec.path
    if file.is_dir():
        file = file / "model.safetensors"
    if not file.is_file():
        raise CheckpointError(
            f"{str(file)!r} is missing: the dense module at {spec.path!r} needs its weights as safetensors"
        )
    tensors = _read_tensors(file)
    weight, bias = tensors.get("linear.weight"), tensors.get("linear.bias")
    expected = (spec.out_features, spec.in_features)
    if weight is None or weight.shape != expected:
        found = "nothing" if weight is None else list(weight.shape)
        raise CheckpointError(f"{str(file)!r}: 'linear.weight' should be {list(expected)}, the file has {found}")
    if spec.bias and (bias is None or bias.shape != (spec.out_features,)):
        found = "nothing" if bias is None else list(bias.shape)
        raise CheckpointError(f"{str(file)!r}: 'linear.bias' should be {[spec.out_features]}, the file has {found}")
    if bias is not None and not spec.bias:
        raise CheckpointError(f"{str(file)!r} has a 'linear.bias' that the module's configuration denies")
    return DenseModule(spec, weight, bias)


def _read_tensors(file: Path) -> dict[str, FloatArray]:
    from safetensors import SafetensorError, deserialize  # only checkpoints with dense modules need it

    try:
        entries = deserialize(file.read_bytes())  # type: ignore[no-untyped-call]
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{str(file)!r} is no readable safetensors file: {error}; fetch it again") from error
    return {name: _to_float32(file, name, entry) for name, entry in entries}


def _to_float32(file: Path, name: str, entry: dict[str, object]) -> FloatArray:
    kind, data, shape = str(entry["dtype"]), entry["data"], entry["shape"]
    if kind == "BF16":  # the upper half of a float32
        values = (np.frombuffer(data, np.dtype("<u2")).astype(np.uint32) << 16).view(np.float32)  # type: ignore[call-overload]
    elif kind in _DTYPES:
        values = np.frombuffer(data, _DTYPES[kind]).astype(np.float32)  # type: ignore[call-overload]
    else:
        raise CheckpointError(f"{str(file)!r}: {name!r} has the dtype {kind}, which a dense module cannot be read from")
    return np.asarray(values.reshape(shape), np.float32)


def _activate(values: FloatArray, spec: DenseSpec) -> FloatArray:
    match spec.activation:
        case "identity":
            return values
        case "tanh":
            return np.tanh(values)
        case "relu":
            return np.maximum(values, np.float32(0))
        case "sigmoid":
            return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)), np.float32)
        case "gelu":
            erf = _ERF(values / math.sqrt(2.0)).astype(np.float32)
            return np.asarray(0.5 * values * (1.0 + erf), np.float32)
    raise CheckpointError(f"{spec.activation!r} is no activation of a dense module")
