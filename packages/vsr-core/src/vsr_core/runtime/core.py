"""The rooms below, wired together from one configuration; both facades drive it."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..catalog import Progress
from ..config import CheckReport, Configuration, check, load_config
from ..contract import BackendId, CatalogEntry, ModelHandle, ModelInfo
from ..errors import ModelNotFoundError, RuntimeClosedError, VsrError
from ..models import ModelPool, ModelSources
from ..plugins import BackendInstances, CapabilityMatrix, PluginHost, PluginReport
from ..processors import usable_processors
from ..routing import Planner, Requirements, Resolver
from ..taxonomy import Capability
from .asking import Asking
from .status import BackendStatus, RoleStatus, RuntimeStatus

__all__ = ["ConfigSource", "RuntimeCore", "cache_folder"]

ConfigSource = Path | str | Mapping[str, Any] | None


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where backends keep what they compile: ``VSR_CACHE_DIR``, else ``vsr`` in the user's cache folder."""
    if own := environ.get("VSR_CACHE_DIR"):
        return Path(own).expanduser()
    return Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "vsr"


class RuntimeCore:
    """Everything a runtime holds, without a word about threads or loops.

    :param close_handle: closes a handle where its facade needs that done.
    :param host: the plugins to use; by default, those installed.
    """

    def __init__(
        self,
        source: ConfigSource,
        *,
        close_handle: Callable[[ModelHandle], None],
        host: PluginHost | None = None,
        environ: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        environ = os.environ if environ is None else environ
        self.config: Configuration = load_config(source, environ=environ)
        self.host = host or PluginHost.discover(self.config.plugins, environ=environ)
        self.instances = BackendInstances(
            self.host, self.config.instances, cache_dir=cache_folder(environ), threads=usable_processors()
        )
        self.catalog = _merge(self.config, self.host)
        self.sources = ModelSources(
            self.catalog,
            self.host.families,
            relative_to=self.config.folder,
            progress=progress,
        )
        self.resolver = Resolver(self.config.roles, self.catalog, backends_for=self._serving)
        self.planner = Planner(self.resolver, self.catalog, backends=self.instances, specs=self.sources)
        self.asking = Asking(self.planner)
        self.pool = ModelPool(self.instances, self.sources, close_handle=close_handle)
        self.started_at = time.time()
        self._own_host = host is None
        self._pid = os.getpid()
        self.closed = False
        self.finished = False

    @property
    def forked(self) -> bool:
        """Whether this is a child of the process that made the runtime, which has none of its threads."""
        return os.getpid() != self._pid

    def guard(self) -> None:
        """Refuse to work once closed, or in a child of the process that made the runtime.

        :raises RuntimeClosedError: either is the case.
        """
        if self.closed:
            raise RuntimeClosedError("the runtime is closed; make a new one")
        if self.forked:
            raise RuntimeClosedError(
                "a runtime does not survive a fork: its threads stayed behind; make one in the child"
            )

    def models(self) -> tuple[ModelInfo, ...]:
        """Every model that can be asked for, loaded or not, and whatever a role names, sorted by id."""
        ids: set[BackendId] = set()
        for entry in self.catalog.values():
            ids.update(self.resolver.expand(entry) or self.planner.everywhere(entry))
        ids.update(backend_id for _, _, group in self.config.roles.items() for backend_id in group)
        ids.update(self.pool.loaded())
        return tuple(self._info(backend_id) for backend_id in sorted(ids))

    def _info(self, backend_id: BackendId) -> ModelInfo:
        """The info of a model, with the reason where its backend would refuse it."""
        info = self.pool.info(backend_id)
        if info.state != "not_loaded" or info.state_reason is not None:
            return info
        return dataclasses.replace(info, state_reason=self.planner.reason_against(backend_id))

    def matrix(self, *, probe: bool) -> CapabilityMatrix:
        """Backend by capability: what is declared and, with ``probe``, what a look at this host made of it."""
        return CapabilityMatrix.of(self.instances, probe=probe)

    def plugins(self) -> PluginReport:
        """Every plugin found, with what it contributes or why it does not."""
        return self.host.report()

    def check(self) -> CheckReport:
        """Every impossible combination in the configuration; loads nothing."""
        return check(self.config, self.host, self.instances)

    def status(self) -> RuntimeStatus:
        """The state of the whole runtime."""
        backends = tuple(BackendStatus.of(name, self.instances, self.host) for name in self.instances.names())
        roles = tuple(RoleStatus(kind=kind, name=name, group=group) for kind, name, group in self.config.roles.items())
        return RuntimeStatus(
            config=str(self.config.path) if self.config.path else None,
            pid=self._pid,
            started_at=self.started_at,
            threads=usable_processors(),
            backends=backends,
            roles=roles,
            models=self.models(),
        )

    def target(self, model: str) -> BackendId:
        """The one id to load or unload for a name: the candidate that a request to that name would try first.

        :raises VsrError: what the request would raise.
        """
        first: VsrError | None = None
        stated = self._stated(model)
        kinds = {kind for kind, role, _ in self.config.roles.items() if role == model}
        for capability in sorted(Capability, key=lambda each: each not in stated and each.kind not in kinds):
            if capability.derived_from is not None:
                continue
            try:
                return self.planner.plan(Requirements.of(capability.kind, capability), model).first.backend_id
            except VsrError as error:
                if first is None or (
                    isinstance(first, ModelNotFoundError) and not isinstance(error, ModelNotFoundError)
                ):
                    first = error
        if isinstance(first, ModelNotFoundError) and not kinds and ":" not in model and model not in self.catalog:
            raise _nobody(model)
        raise first or _nobody(model)

    def _stated(self, model: str) -> tuple[Capability, ...]:
        """What a model of the catalog is for, as far as that is known; nothing for other names."""
        entry = self.catalog.get(model.rpartition(":")[2]) if isinstance(model, str) else None
        ids = () if entry is None else self.resolver.expand(entry) or self.planner.everywhere(entry)
        return self.sources.describe(ids[0]).capabilities if ids else ()

    async def aclose(self) -> None:
        """Close the adapters and, where this runtime found them itself, the plugins; the pool is its facade's to close."""
        await self.instances.close()
        if self._own_host:
            await asyncio.to_thread(self.host.close)

    def _serving(self, entry: CatalogEntry) -> tuple[str, ...]:
        return self.planner.serving(entry)


def _nobody(model: str) -> ModelNotFoundError:
    """The error for a name that stands for nothing, whatever kind is asked for."""
    told = (
        "no role is called 'default', and there is no one model to take for it; name a model or a role"
        if model == "default"
        else f"no role and no model is called {model!r}; `vsr models` lists them"
    )
    return ModelNotFoundError(told, name=model)


def _merge(config: Configuration, host: PluginHost) -> dict[str, CatalogEntry]:
    """The catalog: what plugins contribute, overridden name by name by the configuration."""
    entries = {entry.name: entry for entry in host.catalog}
    entries.update(config.catalog)
    return dict(sorted(entries.items()))
