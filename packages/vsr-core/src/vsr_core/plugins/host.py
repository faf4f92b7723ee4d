"""The plugin host: what is installed, what of it is used, and why the rest is not."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal, overload

from ..catalog import CORE_FAMILIES
from ..contract import (
    AttemptRecord,
    BackendDescriptor,
    CatalogEntry,
    FamilyDescriptor,
    PolicyDescriptor,
    RouterDescriptor,
)
from ..errors import PluginConflictError
from .compatibility import contract_text
from .conflicts import Registry, resolve
from .discovery import import_all, name_problem
from .entry_points import EntryPointLike, find_installed, sort_out
from .intake import Plugin, admit
from .listing import absence, conflict_error, record_of
from .observers import Observer
from .records import Contribution, PluginFailure, PluginRecord, PluginReport, PluginSource
from .settings import PluginSettings, Selection, same_name

__all__ = ["PluginHost"]

_MOST_FAILURES: Final = 32


class PluginHost:
    """Plugins and what they contribute; safe to use from any thread.

    A new host has no plugins: :meth:`discover` gives one with those that are installed, :meth:`register` adds the
    application's own.

    :param families: the families that are there before any plugin; the core's by default.
    """

    def __init__(
        self, settings: PluginSettings | None = None, *, families: Iterable[FamilyDescriptor] = CORE_FAMILIES
    ) -> None:
        settings = settings or PluginSettings()
        self.settings: Final = settings
        self._core_families = tuple(families)
        self._selection = Selection.of(settings, {})
        self._warnings: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._plugins: tuple[Plugin, ...] = ()
        self._failures: dict[PluginSource, list[PluginFailure]] = {}
        self._observers: Mapping[PluginSource, Observer] = {}
        self._registry: Registry = resolve((), settings.precedence, self._core_families)

    @classmethod
    def discover(
        cls,
        settings: PluginSettings | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        entry_points: Iterable[EntryPointLike] | None = None,
        families: Iterable[FamilyDescriptor] = CORE_FAMILIES,
    ) -> PluginHost:
        """Find, import and ask every plugin, each in isolation.

        :param environ: where ``VSR_PLUGINS``, ``VSR_DISABLED_PLUGINS`` and ``VSR_STRICT_PLUGINS`` are read; the
            process's environment by default.
        :param entry_points: the plugins to consider; those of the installed distributions by default.
        :raises PluginError: the first failure or conflict, where plugins are strict.
        :raises ConfigError: ``VSR_STRICT_PLUGINS`` is neither true nor false.
        """
        environ = os.environ if environ is None else environ
        settings = (settings or PluginSettings()).under(environ)
        host = cls(settings, families=families)
        found = find_installed() if entry_points is None else sort_out(entry_points)
        sources = [item.source for item in found.plugins]
        host._selection = Selection.of(settings, environ)
        host._warnings = (*found.warnings, *host._selection.unknown(sources))
        host._commit(import_all(found.plugins, host._selection, settings))
        unsettled = [dispute for dispute in host._registry.disputes if not dispute.settled]
        if settings.strict and unsettled:
            raise conflict_error(unsettled[0])
        return host

    def register(self, plugin: object, *, name: str, distribution: str = "", version: str = "") -> PluginRecord:
        """Add a plugin object; it is taken as a whole, or not at all and nothing changes.

        :param plugin: a module or an object with functions marked ``hookimpl``.
        :raises PluginConflictError: another plugin has the name, or a name that this one offers.
        :raises PluginError: the plugin is switched off, malformed, incompatible, raises or hangs.
        """
        source = PluginSource(name=name, distribution=distribution, version=version)
        problem = name_problem(source)
        if problem is not None:
            raise Plugin(source=source).failed("register", problem).error()
        refusal = self._selection.denial(source)
        if refusal is not None:
            raise Plugin(source=source, status="disabled", reason=refusal).error()
        admitted = admit(source, plugin, timeout=self.settings.timeout)
        if admitted.status != "active":
            raise admitted.error()
        with self._lock:
            self._refuse_duplicate(source)
            plugins = tuple(sorted((*self._plugins, admitted), key=lambda each: each.source))
            registry = resolve(plugins, self.settings.precedence, self._core_families)
            for dispute in registry.disputes:
                if source in dispute.losers:
                    raise conflict_error(dispute)
            self._publish(plugins, registry)
        return record_of(admitted, (), ())

    @property
    def backends(self) -> Mapping[str, Contribution[BackendDescriptor]]:
        """The backends in use, by name, sorted."""
        return self._registry.backends

    @property
    def policies(self) -> Mapping[str, Contribution[PolicyDescriptor]]:
        """The routing policies in use, by name, sorted."""
        return self._registry.policies

    @property
    def routers(self) -> Mapping[str, Contribution[RouterDescriptor]]:
        """The routers in use, by name, sorted."""
        return self._registry.routers

    @property
    def families(self) -> Mapping[str, FamilyDescriptor]:
        """The model families known, the core's and the plugins', by name, sorted."""
        return self._registry.families

    @property
    def catalog(self) -> tuple[CatalogEntry, ...]:
        """The models that plugins bring, sorted by name, each saying which plugin brought it."""
        return self._registry.catalog

    @overload
    def require(self, what: Literal["backend"], name: str) -> BackendDescriptor: ...
    @overload
    def require(self, what: Literal["policy"], name: str) -> PolicyDescriptor: ...
    @overload
    def require(self, what: Literal["router"], name: str) -> RouterDescriptor: ...
    def require(self, what: Literal["backend", "policy", "router"], name: str) -> Any:
        """The descriptor of that name.

        :raises PluginError: a plugin offers it, or seems to, and cannot be used; the message says why.
        :raises AddressError: no plugin offers it.
        """
        registry = self._registry
        tables: Mapping[str, Mapping[str, Contribution[Any]]] = {
            "backend": registry.backends,
            "policy": registry.policies,
            "router": registry.routers,
        }
        contribution = tables[what].get(name)
        if contribution is None:
            raise absence(what, name, self._plugins, registry.disputes)
        return contribution.descriptor

    def report(self) -> PluginReport:
        """Every plugin that was found or registered, whatever became of it."""
        with self._lock:
            plugins, registry = self._plugins, self._registry
            failures = {source: tuple(found) for source, found in self._failures.items()}
        return PluginReport(
            contract=contract_text(),
            plugins=tuple(record_of(plugin, registry.disputes, failures.get(plugin.source, ())) for plugin in plugins),
            warnings=self._warnings,
        )

    def record_failure(self, source: PluginSource, failure: PluginFailure) -> None:
        """List something that went wrong with a plugin after discovery; repetitions are listed once."""
        with self._lock:
            known = self._failures.setdefault(source, [])
            if failure not in known and len(known) < _MOST_FAILURES:
                known.append(failure)

    def notify(self, record: AttemptRecord) -> None:
        """Tell every observing plugin of an attempt, without waiting for any."""
        for observer in self._observers.values():
            observer.notify(record)

    def close(self, *, timeout: float = 1.0) -> None:
        """Let observers take note of what they have been told, each for at most ``timeout`` seconds, and end them."""
        for observer in self._observers.values():
            observer.close(timeout)

    def _commit(self, plugins: tuple[Plugin, ...]) -> None:
        with self._lock:
            self._publish(plugins, resolve(plugins, self.settings.precedence, self._core_families))

    def _publish(self, plugins: tuple[Plugin, ...], registry: Registry) -> None:
        observers = {
            plugin.source: self._observers.get(plugin.source)
            or Observer(plugin.source.name, plugin.offer.observe, partial(self.record_failure, plugin.source))
            for plugin in plugins
            if plugin.status == "active" and plugin.offer.observe is not None
        }
        self._plugins, self._registry = plugins, registry
        self._observers = MappingProxyType(observers)

    def _refuse_duplicate(self, source: PluginSource) -> None:
        for plugin in self._plugins:
            if same_name(plugin.source.name) == same_name(source.name):
                raise PluginConflictError(
                    f"the plugin name {source.name!r} is taken: {plugin.source} has it, "
                    f"so {source} cannot be registered; register it under another name",
                    plugin=source.name,
                    distribution=source.distribution or None,
                    stage="register",
                )
