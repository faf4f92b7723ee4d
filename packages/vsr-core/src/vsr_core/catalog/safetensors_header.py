"""The header of a safetensors file: names, types and shapes of its tensors, read without reading the tensors."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from ..errors import CheckpointError

__all__ = ["TensorEntry", "dominant_dtype", "read_safetensors_header"]

MAX_HEADER_BYTES = 100_000_000
"""The limit of the format itself."""

_POINTER = b"version https://git-lfs"

_DTYPES: Mapping[str, tuple[str, int]] = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "F8_E4M3": ("float8_e4m3", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U64": ("uint64", 8),
    "U32": ("uint32", 4),
    "U16": ("uint16", 2),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """One tensor: its type by its usual name (``float32``, ``bfloat16``), its shape, its size in bytes."""

    dtype: str
    shape: tuple[int, ...]
    size: int


def read_safetensors_header(path: Path) -> dict[str, TensorEntry]:
    """The tensors of a file by name, once the file is as long as its header says.

    :raises CheckpointError: a missing, truncated or otherwise damaged file; the message has the sizes.
    """
    try:
        actual = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(24)
            if start.startswith(_POINTER):
                raise CheckpointError(f"{path}: is a Git LFS pointer, not weights; fetch it with 'git lfs pull'")
            if len(start) < 8:
                raise CheckpointError(f"{path}: {actual} bytes are too few for a safetensors file")
            (length,) = struct.unpack("<Q", start[:8])
            if length > MAX_HEADER_BYTES or 8 + length > actual:
                raise CheckpointError(
                    f"{path}: truncated or no safetensors file: its header would take {length} bytes, "
                    f"the file has {actual}"
                )
            file.seek(8)
            header = json.loads(file.read(length))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise CheckpointError(f"{path}: the safetensors header is not JSON") from None
    if not isinstance(header, dict):
        raise CheckpointError(f"{path}: the safetensors header is not an object")
    tensors, end = _entries(path, header)
    if 8 + length + end != actual:
        raise CheckpointError(
            f"{path}: {actual} bytes long, but its header describes {8 + length + end}; the file is damaged, fetch it again"
        )
    return tensors


def dominant_dtype(tensors: Iterable[TensorEntry]) -> str | None:
    """The type that most bytes have, floating types before all others; None without tensors."""
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        sizes[tensor.dtype] += tensor.size
    return max(sizes, key=lambda dtype: ("float" in dtype, sizes[dtype], dtype), default=None)


def _entries(path: Path, header: Mapping[str, Any]) -> tuple[dict[str, TensorEntry], int]:
    tensors: dict[str, TensorEntry] = {}
    end = 0
    for name, described in header.items():
        if name == "__metadata__":
            continue
        tensors[name] = entry = _entry(path, name, described)
        first, last = described["data_offsets"]
        if last - first != entry.size:
            raise CheckpointError(f"{path}: tensor {name!r} takes {last - first} bytes, its shape needs {entry.size}")
        end = max(end, last)
    if sum(tensor.size for tensor in tensors.values()) != end:
        raise CheckpointError(f"{path}: the tensors overlap or leave gaps")
    return tensors, end


def _entry(path: Path, name: str, described: Any) -> TensorEntry:
    wrong = CheckpointError(f"{path}: the header does not describe tensor {name!r} properly")
    if not isinstance(described, dict):
        raise wrong
    shape, offsets = described.get("shape"), described.get("data_offsets")
    if not (_whole(shape) and _whole(offsets) and len(offsets) == 2 and offsets[0] <= offsets[1]):
        raise wrong
    stored = described.get("dtype")
    dtype, width = _DTYPES.get(stored, (str(stored).lower(), 0)) if isinstance(stored, str) else ("", -1)
    if width < 0:
        raise wrong
    size = math.prod(shape) * width if width else offsets[1] - offsets[0]
    return TensorEntry(dtype=dtype, shape=tuple(shape), size=size)


def _whole(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
