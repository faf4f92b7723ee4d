"""The header of a GGUF file, as far as it says which model the file holds."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import CheckpointError

__all__ = ["gguf_config", "gguf_dtype", "read_gguf_header"]

MAGIC = b"GGUF"
_MAX_TEXT = 16 * 1024 * 1024
_MAX_ENTRIES = 100_000

_STRING, _ARRAY = 8, 9
_SCALARS: Mapping[int, str] = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip

_MODEL_TYPES: Mapping[str, str] = {
    "bert": "bert",
    "modern-bert": "modernbert",
    "llama": "llama",
    "qwen3": "qwen3",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
}
"""``general.architecture`` -> ``model_type`` of ``config.json``."""

_CAUSAL: Mapping[str, str] = {
    "llama": "LlamaForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3": "Gemma3ForCausalLM",
}

_FILE_TYPES: Mapping[int, str] = {
    0: "float32", 1: "float16", 2: "q4_0", 3: "q4_1", 7: "q8_0", 8: "q5_0", 9: "q5_1", 10: "q2_k", 11: "q3_k",
    12: "q3_k", 13: "q3_k", 14: "q4_k", 15: "q4_k", 16: "q5_k", 17: "q5_k", 18: "q6_k", 32: "bfloat16",
}  # fmt: skip


def read_gguf_header(path: Path) -> dict[str, Any]:
    """The scalar entries of the header by key; arrays, such as the vocabulary, are skipped.

    :raises CheckpointError: not GGUF, a version before 2, or truncated within the header.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            if magic != MAGIC:
                raise CheckpointError(f"{path}: no GGUF file: it starts with {magic!r}")
            version, _, count = struct.unpack("<IQQ", _take(file, 20))
            if version < 2:
                raise CheckpointError(f"{path}: GGUF version {version} is not supported; convert it to version 3")
            if count > _MAX_ENTRIES:
                raise CheckpointError(f"{path}: the GGUF header claims {count} entries")
            return _read_entries(file, count)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (EOFError, struct.error):
        raise CheckpointError(
            f"{path}: truncated within the GGUF header ({path.stat().st_size} bytes); fetch it again"
        ) from None
    except (UnicodeDecodeError, ValueError) as error:
        raise CheckpointError(f"{path}: the GGUF header is damaged: {error}") from None


def gguf_config(header: Mapping[str, Any]) -> dict[str, Any]:
    """What the header says, under the names ``config.json`` has for it."""
    architecture = str(header.get("general.architecture", ""))
    config: dict[str, Any] = {"model_type": _MODEL_TYPES.get(architecture, architecture)}
    if architecture in _CAUSAL:
        config["architectures"] = [_CAUSAL[architecture]]
    for ours, theirs in (
        ("hidden_size", "embedding_length"),
        ("num_hidden_layers", "block_count"),
        ("max_position_embeddings", "context_length"),
        ("vocab_size", "vocab_size"),
    ):
        value = header.get(f"{architecture}.{theirs}")
        if value is not None:
            config[ours] = value
    return config


def gguf_dtype(header: Mapping[str, Any]) -> str | None:
    """The quantization of most tensors, such as ``q4_1``."""
    return _FILE_TYPES.get(header.get("general.file_type", -1))


def _read_entries(file: BinaryIO, count: int) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for _ in range(count):
        key = _text(file)
        (kind,) = struct.unpack("<I", _take(file, 4))
        if kind == _ARRAY:
            _skip_array(file)
        else:
            entries[key] = _value(file, kind)
    return entries


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    form = _SCALARS.get(kind)
    if form is None:
        raise ValueError(f"unknown value type {kind}")
    return struct.unpack(form, _take(file, struct.calcsize(form)))[0]


def _skip_array(file: BinaryIO) -> None:
    kind, length = struct.unpack("<IQ", _take(file, 12))
    if kind == _STRING:
        for _ in range(length):
            (size,) = struct.unpack("<Q", _take(file, 8))
            _take(file, size)
    elif kind in _SCALARS:
        file.seek(struct.calcsize(_SCALARS[kind]) * length, 1)
    else:
        raise ValueError(f"unknown array type {kind}")


def _text(file: BinaryIO) -> str:
    (size,) = struct.unpack("<Q", _take(file, 8))
    return _take(file, size).decode("utf-8")


def _take(file: BinaryIO, size: int) -> bytes:
    if size > _MAX_TEXT:
        raise ValueError(f"a value of {size} bytes")
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data
