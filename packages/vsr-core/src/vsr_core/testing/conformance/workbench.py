"""A backend under test, in a plugin host of its own: what it declares, its handles, and runtimes around it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...config import load_config
from ...contract import BackendId, CapabilitySet, LoadRequest, ModelHandle, RuntimeInfo
from ...models import ModelSources
from ...plugins import BackendInstances, PluginHost
from ...runtime import Runtime

__all__ = ["PLUGIN", "Workbench"]

PLUGIN = "conformance"
"""The name under which a plugin is registered here."""

Entry = Mapping[str, Any]


class Workbench:
    """One plugin and one backend of it; nothing that is installed has a part in it.

    :param plugin: the module or object with the hooks; ``backend`` names the backend in it.
    :param settings: what a configuration says of the backend.
    :param cache: the folder where backends may keep what they compile; ``threads`` are those of the process.
    """

    def __init__(self, plugin: object, backend: str, *, settings: Mapping[str, Any], cache: Path, threads: int) -> None:
        self.backend = backend
        self._settings = dict(settings)
        self._environ = {"VSR_CACHE_DIR": str(cache)}
        self._cache = cache
        self._threads = threads
        self._handles: list[ModelHandle] = []
        self.host = PluginHost()
        self.host.register(plugin, name=PLUGIN)
        self.instances = self._instances()

    def declared(self) -> CapabilitySet:
        """What the backend declares, as the core reads it."""
        return self.instances.declared(self.backend)

    def probe(self) -> RuntimeInfo:
        """What it finds on this host."""
        return self.instances.probe(self.backend)

    def runtime(self, catalog: Mapping[str, Entry], **settings: Any) -> Runtime:
        """A runtime with these models, and these settings beside the backend's own."""
        return Runtime(self._document(catalog, settings), host=self.host, environ=self._environ)

    def request(self, entry: Entry, *, name: str = "m", layer: int | None = None) -> LoadRequest:
        """What the backend is told to load a model."""
        config = load_config(self._document({name: entry}, {}), environ=self._environ)
        located = ModelSources(config.catalog, self.host.families).locate(BackendId(self.backend, name))
        settings, context = self.instances.settings(self.backend), self.instances.context(self.backend)
        return LoadRequest(
            backend_id=BackendId(self.backend, name),
            entry=located.entry,
            path=located.path,
            spec=located.spec,
            device=settings.device,
            precision=settings.precision,
            batching=settings.batching,
            layer=layer,
            labels=located.spec.labels,
            cache_dir=context.cache_dir,
            threads=context.threads,
        )

    def load(self, entry: Entry, *, name: str = "m", layer: int | None = None) -> ModelHandle:
        """Load a model on the one adapter of this bench; it is closed with the bench."""
        request = self.request(entry, name=name, layer=layer)
        handle = self.instances.adapter(self.backend).load(request)
        self._handles.append(handle)
        return handle

    def unload(self, handle: ModelHandle) -> None:
        """Close a handle."""
        self._handles.remove(handle)
        asyncio.run(handle.close())

    @contextlib.contextmanager
    def open(self) -> Iterator[Workbench]:
        """Close what was loaded in the end, and the adapter."""
        try:
            yield self
        finally:
            for handle in [*self._handles]:
                self.unload(handle)
            asyncio.run(self.instances.close())
            self.host.close()

    def fresh(self) -> BackendInstances:
        """Adapters that share nothing with those of this bench."""
        return self._instances()

    def _instances(self) -> BackendInstances:
        config = load_config(self._document({}, {}), environ=self._environ)
        return BackendInstances(self.host, config.instances, cache_dir=self._cache, threads=self._threads)

    def _document(self, catalog: Mapping[str, Entry], settings: Mapping[str, Any]) -> dict[str, Any]:
        document: dict[str, Any] = {"catalog": {name: dict(entry) for name, entry in catalog.items()}}
        if own := {**self._settings, **settings}:
            document["backends"] = {self.backend: own}
        return document
