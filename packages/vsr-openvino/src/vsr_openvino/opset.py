"""The operator set of an ONNX file; OpenVINO reads one that is newer than itself without a word.

Field numbers are those of ``ModelProto`` and ``OperatorSetIdProto`` in
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, the wire format that of protocol buffers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from vsr_core.errors import CheckpointError

__all__ = ["NEWEST_OPSET", "check_opset"]

NEWEST_OPSET = 27
"""The newest operator set that the ONNX library inside OpenVINO 2026.4 describes."""

_OPSET_IMPORT, _DOMAIN, _VERSION = 8, 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTH = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_DOMAIN = 4096


def check_opset(path: Path) -> None:
    """Refuse a file of a newer operator set than OpenVINO knows.

    :raises CheckpointError: it is newer, the file names none, or is no ONNX file at all.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            versions = [version for domain, version in _opsets(file, size) if domain in (b"", b"ai.onnx")]
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, IndexError):
        versions = []
    if not versions:
        raise CheckpointError(f"{path} is no ONNX file, or is cut short: copy or export it again")
    if max(versions) > NEWEST_OPSET:
        raise CheckpointError(
            f"{path} uses ONNX operator set {max(versions)}, and OpenVINO knows them up to {NEWEST_OPSET}:"
            f" export it with an older one, such as 20"
        )


def _opsets(file: IO[bytes], end: int) -> Iterator[tuple[bytes, int]]:
    """Domain and version of each operator set in the message that ends at a place of the file."""
    for tag, kind in _keys(file, end):
        if tag == _OPSET_IMPORT and kind == _BYTES:
            yield _opset(file)
        else:
            _skip(file, kind)


def _opset(file: IO[bytes]) -> tuple[bytes, int]:
    domain, version = b"", 0
    size = _varint(file)
    for tag, kind in _keys(file, file.tell() + size):
        if tag == _DOMAIN and kind == _BYTES:
            domain = file.read(min(_varint(file), _LONGEST_DOMAIN))
        elif tag == _VERSION and kind == _VARINT:
            version = _varint(file)
        else:
            _skip(file, kind)
    return domain, version


def _keys(file: IO[bytes], end: int) -> Iterator[tuple[int, int]]:
    """The number and the wire type of each field up to a place; the caller reads or skips what follows."""
    while file.tell() < end:
        key = _varint(file)
        yield key >> 3, key & 7
    if file.tell() > end:
        raise ValueError("the message is cut short")


def _skip(file: IO[bytes], kind: int) -> None:
    if kind == _VARINT:
        _varint(file)
    elif kind == _BYTES:
        file.seek(_varint(file), os.SEEK_CUR)
    elif kind in _WIDTH:
        file.seek(_WIDTH[kind], os.SEEK_CUR)
    else:
        raise ValueError(f"there is no wire type {kind}")


def _varint(file: IO[bytes]) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise ValueError("a number is cut short")
