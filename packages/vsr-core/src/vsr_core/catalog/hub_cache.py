"""Models of the hub that are on this machine already."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .hub import cached_snapshot
from .sources import HubSource, ResolvedSource

__all__ = ["cached_source"]

_WEIGHTS: Final = frozenset({".safetensors", ".onnx", ".xml", ".gguf", ".bin"})


def cached_source(source: HubSource, *, cache_dir: Path | None = None) -> ResolvedSource | None:
    """Where the cache has a model, weights included; None where it has not, and nothing is fetched."""
    try:
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError:
        return None
    try:
        snapshot = cached_snapshot(source.repository, source.revision, cache_dir)
    except LocalEntryNotFoundError:
        return None
    path = snapshot / source.path
    if not path.exists() or not any(file.suffix in _WEIGHTS for file in snapshot.rglob("*")):
        return None
    return ResolvedSource(path=path, revision=snapshot.name, source=source)
