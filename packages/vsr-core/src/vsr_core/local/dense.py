"""Dense modules after pooling: ``activation(x @ weight.T + bias)``, read from safetensors without a framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..contract import DenseSpec, FloatArray
from ..errors import CheckpointError
from .activations import ACTIVATIONS
from .tensors import read_float32

__all__ = ["DenseModule", "apply_dense", "load_dense"]


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
        return ACTIVATIONS[self.spec.activation](result)


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
    tensors = read_float32(file)
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
