"""Where files are kept on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["hub_folder", "own_folder"]


def own_folder(environ: Mapping[str, str]) -> Path:
    """Where backends keep what they compile."""
    from ..runtime import cache_folder

    return cache_folder(environ)


def hub_folder(environ: Mapping[str, str]) -> Path:
    """Where models from the hub are downloaded to, by the variables of ``huggingface_hub``."""
    if cache := environ.get("HF_HUB_CACHE"):
        return Path(cache).expanduser()
    if home := environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    return Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface" / "hub"
