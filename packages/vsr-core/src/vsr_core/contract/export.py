"""What an exporter is asked to do and what it did; a backend names its exporter in its descriptor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .model import CatalogEntry, ModelSpec

__all__ = ["AdapterBase", "ExportProgress", "ExportReport", "ExportRequest", "Quantization"]

Quantization = Literal["int8"]
"""How weights are made smaller: to whole numbers of 8 bits, with activations quantised as they come."""

ExportProgress = Callable[[str], None]
"""Told what an export does next, as a short phrase for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterBase:
    """The checkpoint a LoRA adapter sits on: its resolved place, its entry, and what its files say."""

    path: Path
    entry: CatalogEntry
    spec: ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """A checkpoint to write in the form a backend reads, or an adapter to merge into its base.

    :param source: how the caller named the model, for messages.
    :param path: the resolved folder or file of the checkpoint; :param spec: what its files say, with their hash.
    :param out: the folder to make, absolute; it does not exist, or is empty.
    :param layers: the exit layers the result is to have, rising; the native depth is among them.
    :param base: for an adapter, what it sits on.
    """

    source: str
    path: Path
    entry: CatalogEntry
    spec: ModelSpec
    out: Path
    layers: tuple[int, ...]
    quantize: Quantization | None = None
    base: AdapterBase | None = None
    progress: ExportProgress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """An export that was checked against its source and is on disk.

    :param manifest: the file that describes the export; :param files: all files of ``folder``, relative to it.
    :param max_abs: the largest difference from the source's hidden states and logits, over ``texts`` inputs.
    :param cosine: for a quantised export, the mean cosine between its vectors and those of the unquantised graph.
    """

    folder: Path
    manifest: Path
    files: tuple[str, ...]
    layers: tuple[int, ...]
    max_abs: float
    texts: int
    seconds: float
    cosine: float | None = None
