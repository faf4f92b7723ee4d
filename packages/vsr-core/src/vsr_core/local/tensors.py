"""Small safetensors files into float32 arrays, without a framework."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..contract import FloatArray
from ..errors import CheckpointError

__all__ = ["read_float32"]

_DTYPES = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2")}


def read_float32(file: Path) -> dict[str, FloatArray]:
    """Every tensor of a file by its name, as float32.

    :raises CheckpointError: no readable safetensors file, or one with tensors that are not floating.
    """
    from safetensors import SafetensorError, deserialize  # only checkpoints with dense modules or heads need it

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
        raise CheckpointError(f"{str(file)!r}: {name!r} has the dtype {kind}, which is no floating type read here")
    return np.asarray(values.reshape(shape), np.float32)
