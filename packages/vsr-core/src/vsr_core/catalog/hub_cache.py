"""Models of the hub that are on this machine already."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .hub import cached_snapshot
from .sources import HubSource, ResolvedSource

__all__ = ["cached_source"]

_WEIGHTS: Final = frozenset({".safetensors", ".onnx", ".xml", ".gguf", ".bin"})
_TOKENIZERS: Final = frozenset({"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"})


def cached_source(source: HubSource, *, cache_dir: Path | None = None) -> ResolvedSource | None:
    """Where the cache has a model, with weights and a tokenizer; None where it has not, and nothing is fetched.

    Others keep models in the same cache, and may have fetched less of one than it takes.
    """
    try:
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError:
        return None
    try:
        snapshot = cached_snapshot(source.repository, source.revision, cache_dir)
    except LocalEntryNotFoundError:
        return None
    path, files = snapshot / source.path, list(snapshot.rglob("*"))
    if not path.exists() or _WEIGHTS.isdisjoint(file.suffix for file in files):
        return None
    if _TOKENIZERS.isdisjoint(file.name for file in files) and not any(file.suffix == ".gguf" for file in files):
        return None
    return ResolvedSource(path=path, revision=snapshot.name, source=source)
