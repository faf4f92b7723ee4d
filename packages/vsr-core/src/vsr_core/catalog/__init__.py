"""Models by name: where their files are, what the files say, and what an entry may state about them."""

from __future__ import annotations

from .documents import model_folder
from .facts import CheckpointFacts
from .families import CORE_FAMILIES, recognise
from .fingerprint import hash_files
from .hub import Progress
from .hub_cache import cached_source
from .inspection import inspect_checkpoint
from .labels import LabelMap, load_labels, resolve_labels
from .sources import HubSource, PackageSource, PathSource, ResolvedSource, Source, parse_source, resolve_source
from .specify import specify

__all__ = [
    "CORE_FAMILIES",
    "CheckpointFacts",
    "HubSource",
    "LabelMap",
    "PackageSource",
    "PathSource",
    "Progress",
    "ResolvedSource",
    "Source",
    "cached_source",
    "hash_files",
    "inspect_checkpoint",
    "load_labels",
    "model_folder",
    "parse_source",
    "recognise",
    "resolve_labels",
    "resolve_source",
    "specify",
]
