"""What the catalog says about a backend id, and where its files are."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..catalog import (
    HubSource,
    Progress,
    ResolvedSource,
    Source,
    cached_source,
    hash_files,
    parse_source,
    resolve_source,
    specify,
)
from ..contract import BackendId, CatalogEntry, FamilyDescriptor, ModelInfo, ModelSpec
from ..errors import CheckpointError, ModelNotFoundError, VsrError

__all__ = ["Located", "ModelSources"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A model whose files are on this machine and agree with its entry."""

    entry: CatalogEntry
    path: Path
    spec: ModelSpec


class ModelSources:
    """Reads models' files; what it learns of an entry is kept, since a catalog does not change under a runtime.

    :param relative_to: the folder that relative paths in the catalog start from.
    :param progress: told of downloads.
    """

    def __init__(
        self,
        catalog: Mapping[str, CatalogEntry],
        families: Mapping[str, FamilyDescriptor],
        *,
        relative_to: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._catalog = catalog
        self._families = families
        self._relative_to = relative_to
        self._progress = progress
        self._specs: dict[str, ModelSpec] = {}
        self._lock = threading.Lock()
        self._learned = 0

    @property
    def learned(self) -> int:
        """Grows whenever something new is known of a model's files."""
        return self._learned

    def entry(self, backend_id: BackendId) -> CatalogEntry:
        """The catalog entry behind an id.

        :raises ModelNotFoundError: there is none.
        """
        entry = self._catalog.get(backend_id.model)
        if entry is None:
            raise ModelNotFoundError(
                f"{backend_id}: the catalog has no model called {backend_id.model!r}", name=str(backend_id)
            )
        return entry

    def base_of(self, backend_id: BackendId) -> BackendId | None:
        """The id of the base an adapter sits on, on the same backend; None for what is no adapter."""
        base = self.entry(backend_id).base
        return None if base is None else BackendId(backend_id.backend, base)

    def spec(self, backend_id: BackendId) -> ModelSpec | None:
        """What the files of a model say, where they are on this machine already; nothing is downloaded.

        :raises CheckpointError: the files are missing, damaged or contradict the entry.
        """
        entry = self._catalog.get(backend_id.model)
        if entry is None:
            return None
        with self._lock:
            known = self._specs.get(entry.name)
        if known is not None:
            return known
        resolved = self._on_this_machine(entry)
        if resolved is None or (
            entry.base is not None and self.spec(BackendId(backend_id.backend, entry.base)) is None
        ):
            return None
        return self._specify(entry, resolved)

    def locate(self, backend_id: BackendId) -> Located:
        """The files of a model, downloaded if need be, and what they say, with their hash.

        :raises CheckpointError: they cannot be had, are damaged or contradict the entry.
        """
        entry = self.entry(backend_id)
        resolved = resolve_source(
            parse_source(_source_text(entry)),
            relative_to=self._folder(entry),
            artifact=entry.artifact,
            progress=self._progress,
        )
        path, spec = resolved.path, self._specify(entry, resolved)
        spec = dataclasses.replace(spec, content_hash=hash_files(path, spec.files))
        self._learn(entry, spec)
        return Located(entry=entry, path=path, spec=spec)

    def describe(self, backend_id: BackendId) -> ModelInfo:
        """What is known of a model that is not loaded; a problem with its files is in ``state_reason``."""
        entry = self._catalog.get(backend_id.model)
        reason: str | None = None
        spec: ModelSpec | None = None
        try:
            spec = self.spec(backend_id)
        except VsrError as error:
            reason = error.message
        info = ModelInfo(backend_id=backend_id, state_reason=reason)
        if spec is not None:
            info = _with_spec(info, spec)
        elif entry is not None:
            info = dataclasses.replace(
                info, capabilities=entry.capabilities, family=entry.family, artifact=entry.artifact
            )
        return self.attribute(info)

    def attribute(self, info: ModelInfo) -> ModelInfo:
        """The same info with where the model comes from."""
        entry = self._catalog.get(info.backend_id.model)
        if entry is None:
            return info
        return dataclasses.replace(
            info, source=_source_text(entry), contributed_by=entry.contributed_by, metadata=entry.metadata
        )

    def _on_this_machine(self, entry: CatalogEntry) -> ResolvedSource | None:
        """Where the files are, or None where they would have to be fetched first."""
        source = parse_source(_source_text(entry))
        if isinstance(source, HubSource):
            return cached_source(source)
        return resolve_source(source, relative_to=self._folder(entry))

    def _specify(self, entry: CatalogEntry, resolved: ResolvedSource) -> ModelSpec:
        with self._lock:
            base = self._specs.get(entry.base) if entry.base is not None else None
        spec = specify(
            entry,
            resolved.path,
            families=self._families,
            revision=resolved.revision,
            base=base,
            under_adapters=any(each.base == entry.name for each in self._catalog.values()),
            base_source=self._source_of_base(entry),
            relative_to=self._folder(entry),
        )
        self._learn(entry, spec)
        return spec

    def _source_of_base(self, entry: CatalogEntry) -> Source | None:
        base = self._catalog.get(entry.base) if entry.base is not None else None
        return parse_source(base.source) if base is not None and base.source is not None else None

    def _learn(self, entry: CatalogEntry, spec: ModelSpec) -> None:
        with self._lock:
            if self._specs.get(entry.name) != spec:
                self._specs[entry.name] = spec
                self._learned += 1

    def _folder(self, entry: CatalogEntry) -> Path | None:
        """What relative paths start from: the configuration's folder, for what the configuration names."""
        return self._relative_to if entry.contributed_by is None else None


def _source_text(entry: CatalogEntry) -> str:
    text = entry.adapter or entry.source
    if text is None:
        raise CheckpointError(f"catalog.{entry.name} names no source")
    return text


def _with_spec(info: ModelInfo, spec: ModelSpec) -> ModelInfo:
    return dataclasses.replace(
        info,
        capabilities=spec.capabilities,
        family=spec.family,
        architecture=spec.architecture,
        artifact=spec.artifact,
        modality=spec.modality,
        native_dimensions=spec.native_dimensions,
        dimensions=spec.dimensions,
        native_layers=spec.layers,
        exit_layers=spec.exit_layers,
        advertised_max_tokens=spec.advertised_max_tokens,
        max_tokens=spec.max_tokens,
        labels=spec.labels,
        stored_dtype=spec.stored_dtype,
        revision=spec.revision,
        content_hash=spec.content_hash,
    )
