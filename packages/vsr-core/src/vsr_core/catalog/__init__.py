"""Models by name: where their files are, what the files say, and what an entry may state about them."""

from __future__ import annotations

from .adapters import AdapterConfig
from .documents import model_folder, read_document
from .facts import CheckpointFacts
from .families import CORE_FAMILIES, recognise
from .fingerprint import hash_files
from .graphs import exit_graphs
from .hub import Progress
from .hub_cache import cached_source
from .inspection import inspect_checkpoint
from .labels import LabelMap, load_labels
from .manifest import (
    HEAD_WEIGHTS,
    MANIFEST,
    ExitLayer,
    ExportManifest,
    ExportSource,
    ExportTolerance,
    HeadLayout,
    check_files,
    read_manifest,
    write_manifest,
)
from .sources import HubSource, PackageSource, PathSource, ResolvedSource, Source, parse_source, resolve_source
from .specify import specify

__all__ = [
    "CORE_FAMILIES",
    "HEAD_WEIGHTS",
    "MANIFEST",
    "AdapterConfig",
    "CheckpointFacts",
    "ExitLayer",
    "ExportManifest",
    "ExportSource",
    "ExportTolerance",
    "HeadLayout",
    "HubSource",
    "LabelMap",
    "PackageSource",
    "PathSource",
    "Progress",
    "ResolvedSource",
    "Source",
    "cached_source",
    "check_files",
    "exit_graphs",
    "hash_files",
    "inspect_checkpoint",
    "load_labels",
    "model_folder",
    "parse_source",
    "read_document",
    "read_manifest",
    "recognise",
    "resolve_source",
    "specify",
    "write_manifest",
]
