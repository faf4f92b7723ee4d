"""The manifest of an exported model: what its graph reads and gives, what it was made of, and the hash of every file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast, get_args

from ..contract import PoolingMode, PoolingSpec
from ..errors import CheckpointError
from ..taxonomy import Capability
from .documents import Document, inside, read_document

__all__ = [
    "HEAD_WEIGHTS",
    "MANIFEST",
    "ExitLayer",
    "ExportManifest",
    "ExportSource",
    "ExportTolerance",
    "HeadActivation",
    "HeadLayout",
    "check_files",
    "read_manifest",
    "write_manifest",
]

MANIFEST: Final = "vsr_manifest.json"
HEAD_WEIGHTS: Final = "head.safetensors"
"""The classification head of an exported model, in float32."""

_SCHEMA = 1
_WAY_OUT = "export the model again into an empty folder"
_HASH = re.compile(r"[0-9a-f]{64}")

HeadKind = Literal["sequence", "token"]
HeadPool = Literal["cls", "mean"]
HeadActivation = Literal["tanh", "relu", "gelu", "gelu_new", "silu", "sigmoid"]
Quantization = Literal["int8-dynamic"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitLayer:
    """An output of the graph with the hidden states after a layer, counted from 1.

    :param final_norm: whether the model's last norm is applied to them.
    """

    layer: int
    output: str
    final_norm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadLayout:
    """What the head in :data:`HEAD_WEIGHTS` computes: pool, dense, activation, norm, classifier, in this order.

    :param pool: how a sequence becomes one vector; None for a head of tokens.
    :param dense: whether there is a square dense layer before the classifier; ``activation`` follows it.
    :param norm_eps: epsilon of the layer norm before the classifier; None where there is no norm.
    :param labels: how many logits it gives.
    """

    kind: HeadKind
    labels: int
    pool: HeadPool | None = None
    dense: bool = False
    activation: HeadActivation | None = None
    norm_eps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTolerance:
    """The largest difference the exporter saw between the graph and its source, over so many texts.

    :param cosine: for a quantised graph, the mean cosine of its vectors to those of the float32 graph, at the exit that
        fares worst.
    """

    max_abs: float
    texts: int
    cosine: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource:
    """Which model was exported."""

    content_hash: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportManifest:
    """What :data:`MANIFEST` says.

    :param exits: the graph's hidden states, rising by layer; the native depth is always among them.
    :param inputs: what the graph reads, ``input_ids`` among them.
    :param quantization: how the weights were quantised; None is not at all.
    :param files: SHA-256, hex, of the exported files, by their names relative to the folder.
    """

    family: str
    architecture: str | None
    capabilities: tuple[Capability, ...]
    hidden_size: int
    layers: int
    exits: tuple[ExitLayer, ...]
    max_tokens: int | None
    inputs: tuple[str, ...]
    files: Mapping[str, str]
    pooling: PoolingSpec | None = None
    head: HeadLayout | None = None
    dtype: str = "float32"
    quantization: Quantization | None = None
    tolerance: ExportTolerance | None = None
    source: ExportSource = ExportSource()
    versions: Mapping[str, str] | None = None

    @property
    def exit_layers(self) -> tuple[int, ...]:
        """The layers a request may be answered from, rising."""
        return tuple(exit_.layer for exit_ in self.exits)


def read_manifest(folder: Path) -> ExportManifest | None:
    """The manifest of an exported model, None where the folder has none.

    :raises CheckpointError: a manifest of another schema, or one that is malformed or contradicts itself.
    """
    document = read_document(folder, MANIFEST)
    if document is None:
        return None
    schema = document.integer("schema")
    if schema != _SCHEMA:
        raise CheckpointError(
            f"{document.path}: schema {schema!r} is not one this version reads ({_SCHEMA}); {_WAY_OUT}"
        )
    manifest = ExportManifest(
        family=_needed(document, "family", document.text("family")),
        architecture=document.text("architecture"),
        capabilities=_capabilities(document),
        hidden_size=_needed(document, "hidden_size", document.size("hidden_size")),
        layers=_needed(document, "layers", document.size("layers")),
        exits=_exits(document),
        max_tokens=document.size("max_tokens"),
        inputs=_texts(document, "inputs"),
        files=_files(document),
        pooling=_pooling(document),
        head=_head(document),
        dtype=_needed(document, "dtype", document.text("dtype")),
        quantization=_choice(document, "quantization", get_args(Quantization)),
        tolerance=_tolerance(document),
        source=_source(document),
        versions=_versions(document),
    )
    _check(manifest, document)
    return manifest


def write_manifest(folder: Path, manifest: ExportManifest) -> None:
    """Write :data:`MANIFEST` as :func:`read_manifest` reads it."""
    pooling, head, tolerance = manifest.pooling, manifest.head, manifest.tolerance
    content = {
        "schema": _SCHEMA,
        "family": manifest.family,
        "architecture": manifest.architecture,
        "capabilities": [str(capability) for capability in manifest.capabilities],
        "hidden_size": manifest.hidden_size,
        "layers": manifest.layers,
        "exits": [{"layer": one.layer, "output": one.output, "final_norm": one.final_norm} for one in manifest.exits],
        "max_tokens": manifest.max_tokens,
        "inputs": list(manifest.inputs),
        "pooling": None if pooling is None else _fields(pooling, "modes", "include_prompt"),
        "head": None if head is None else _fields(head, "kind", "pool", "dense", "activation", "norm_eps", "labels"),
        "dtype": manifest.dtype,
        "quantization": manifest.quantization,
        "tolerance": None if tolerance is None else _fields(tolerance, "max_abs", "texts", "cosine"),
        "source": _fields(manifest.source, "content_hash", "revision"),
        "versions": dict(manifest.versions or {}),
        "files": dict(sorted(manifest.files.items())),
    }
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def check_files(folder: Path, manifest: ExportManifest) -> None:
    """Compare the files of an exported model with the hashes in its manifest.

    :raises CheckpointError: a file is missing, or is not the one that was exported.
    """
    for name, expected in manifest.files.items():
        path = folder / name
        try:
            with path.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise CheckpointError(
                f"{path}: {MANIFEST} lists it, and it cannot be read: {error.strerror or error}; {_WAY_OUT}"
            ) from None
        if actual != expected:
            raise CheckpointError(
                f"{path}: its SHA-256 is {actual[:12]}..., {MANIFEST} says {expected[:12]}...: the file was changed, "
                f"or is of another export; {_WAY_OUT}"
            )


def _check(manifest: ExportManifest, document: Document) -> None:
    """Refuse statements that contradict one another."""
    layers, outputs = manifest.exit_layers, [one.output for one in manifest.exits]
    head = manifest.head
    wrong = None
    if list(layers) != sorted(set(layers)) or len(set(outputs)) != len(outputs):
        wrong = "'exits' must rise by layer, each with an output of its own"
    elif not layers or layers[-1] != manifest.layers:
        wrong = f"'exits' must end with the native depth, {manifest.layers}"
    elif "input_ids" not in manifest.inputs:
        wrong = "'inputs' must have 'input_ids' among them"
    elif head is not None and (head.pool is None) != (head.kind == "token"):
        wrong = "'head' must have a 'pool' if, and only if, its kind is 'sequence'"
    elif head is not None and HEAD_WEIGHTS not in manifest.files:
        wrong = f"'files' must list {HEAD_WEIGHTS!r}, since there is a head"
    if wrong is not None:
        raise CheckpointError(f"{document.path}: {wrong}; {_WAY_OUT}")


def _fields(value: object, *names: str) -> dict[str, object]:
    return {name: getattr(value, name) for name in names}


def _needed(document: Document, key: str, value: T | None) -> T:
    if value is None:
        raise CheckpointError(f"{document.path}: has no {key!r}; {_WAY_OUT}")
    return value


def _number(document: Document, key: str) -> float | None:
    value = document.values.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise document.error(key, "a number of zero or more")
    return float(value)


def _choice(document: Document, key: str, choices: tuple[Any, ...]) -> Any:
    value = document.text(key)
    if value is not None and value not in choices:
        raise document.error(key, f"null or one of {', '.join(map(repr, choices))}")
    return value


def _texts(document: Document, key: str) -> tuple[str, ...]:
    items = document.items(key)
    if not all(isinstance(item, str) for item in items):
        raise document.error(key, "a list of strings")
    return items


def _capabilities(document: Document) -> tuple[Capability, ...]:
    try:
        return tuple(Capability(name) for name in _texts(document, "capabilities"))
    except ValueError:
        raise document.error("capabilities", "a list of known capabilities") from None


def _sections(document: Document, key: str) -> tuple[Document, ...]:
    items = document.items(key)
    if not all(isinstance(item, dict) for item in items):
        raise document.error(key, "a list of objects")
    return tuple(Document(document.path, item) for item in items)


def _exits(document: Document) -> tuple[ExitLayer, ...]:
    return tuple(
        ExitLayer(
            layer=_needed(item, "layer", item.size("layer")),
            output=_needed(item, "output", item.text("output")),
            final_norm=bool(item.flag("final_norm")),
        )
        for item in _sections(document, "exits")
    )


def _files(document: Document) -> Mapping[str, str]:
    section = _needed(document, "files", document.section("files"))
    for name, digest in section.values.items():
        if not inside(name, document.path) or not isinstance(digest, str) or not _HASH.fullmatch(digest):
            raise section.error(name, "a SHA-256 in 64 hexadecimal digits")
    if not section.values:
        raise document.error("files", "an object with the SHA-256 of every file")
    return cast("Mapping[str, str]", section.values)


def _pooling(document: Document) -> PoolingSpec | None:
    section = document.section("pooling")
    if section is None:
        return None
    modes = _texts(section, "modes")
    if not modes or any(mode not in get_args(PoolingMode) for mode in modes):
        raise section.error("modes", f"a list of {', '.join(map(repr, get_args(PoolingMode)))}")
    include = section.flag("include_prompt")
    return PoolingSpec(modes=cast("tuple[PoolingMode, ...]", modes), include_prompt=include is not False)


def _head(document: Document) -> HeadLayout | None:
    section = document.section("head")
    if section is None:
        return None
    return HeadLayout(
        kind=_needed(section, "kind", _choice(section, "kind", get_args(HeadKind))),
        labels=_needed(section, "labels", section.size("labels")),
        pool=_choice(section, "pool", get_args(HeadPool)),
        dense=bool(section.flag("dense")),
        activation=_choice(section, "activation", get_args(HeadActivation)),
        norm_eps=_number(section, "norm_eps"),
    )


def _tolerance(document: Document) -> ExportTolerance | None:
    section = document.section("tolerance")
    if section is None:
        return None
    return ExportTolerance(
        max_abs=_needed(section, "max_abs", _number(section, "max_abs")),
        texts=_needed(section, "texts", section.size("texts")),
        cosine=_number(section, "cosine"),
    )


def _source(document: Document) -> ExportSource:
    section = document.section("source")
    if section is None:
        return ExportSource()
    return ExportSource(content_hash=section.text("content_hash"), revision=section.text("revision"))


def _versions(document: Document) -> Mapping[str, str] | None:
    section = document.section("versions")
    if section is None:
        return None
    return {name: _needed(section, name, section.text(name)) for name in section.values}
