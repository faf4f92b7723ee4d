"""Telling people about plugins: the record of one, and why a name cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..contract import BackendDescriptor, PolicyDescriptor, RouterDescriptor
from ..errors import AddressError, PluginConflictError, PluginError, VsrError
from .conflicts import Dispute, What
from .intake import Plugin
from .records import PluginFailure, PluginRecord

__all__ = ["absence", "conflict_error", "record_of"]

_BACKEND_EXTRAS = frozenset({"torch", "onnx", "openvino"})
"""The extras of vsr-core that install a backend of the same name."""


def record_of(plugin: Plugin, disputes: Iterable[Dispute], later: Sequence[PluginFailure]) -> PluginRecord:
    """A plugin as it is listed.

    :param disputes: every dispute; those that the plugin lost are shown with it.
    :param later: what went wrong after discovery.
    """
    source, offer = plugin.source, plugin.offer
    return PluginRecord(
        name=source.name,
        distribution=source.distribution or None,
        version=source.version or None,
        entry_point=source.entry_point or None,
        status=plugin.status,
        stage=plugin.failure.stage if plugin.failure else None,
        reason=plugin.reason,
        import_ms=plugin.import_ms,
        hooks=offer.hooks,
        backends=tuple(backend.name for backend in offer.backends),
        policies=tuple(policy.name for policy in offer.policies),
        routers=tuple(router.name for router in offer.routers),
        families=tuple(family.name for family in offer.families),
        catalog=tuple(entry.name for entry in offer.catalog),
        conflicts=tuple(dispute.text for dispute in disputes if source in dispute.losers),
        failures=(*((plugin.failure,) if plugin.failure else ()), *later),
    )


def conflict_error(dispute: Dispute) -> PluginConflictError:
    """The error for a name that is not used because several plugins claim it."""
    first = dispute.losers[0]
    return PluginConflictError(
        dispute.text, plugin=first.name, distribution=first.distribution or None, stage="register"
    )


def absence(what: What, name: str, plugins: Sequence[Plugin], disputes: Iterable[Dispute]) -> VsrError:
    """The error that says why no contribution of this name is in use."""
    for dispute in disputes:
        if (dispute.what, dispute.name) == (what, name):
            return conflict_error(dispute)
    unusable = [plugin for plugin in plugins if plugin.status != "active"]
    offering = [plugin for plugin in unusable if name in _offered(plugin, what)]
    seeming = [plugin for plugin in unusable if name in (plugin.source.name, *plugin.source.name.split("-"))]
    if offering or seeming:
        return _unusable(what, name, (*offering, *seeming)[0])
    return AddressError(f"no plugin offers a {what} called {name!r}{_way_out(what, name, len(unusable))}", name=name)


def _unusable(what: What, name: str, plugin: Plugin) -> PluginError:
    error = plugin.error()
    told = type(error)(
        f"there is no {what} {name!r}: {error.message}",
        plugin=error.plugin,
        distribution=error.distribution,
        stage=error.stage,
    )
    told.__cause__ = error.__cause__
    return told


def _offered(plugin: Plugin, what: What) -> tuple[str, ...]:
    offers: dict[str, Sequence[BackendDescriptor | PolicyDescriptor | RouterDescriptor]] = {
        "backend": plugin.offer.backends,
        "policy": plugin.offer.policies,
        "router": plugin.offer.routers,
    }
    return tuple(descriptor.name for descriptor in offers.get(what, ()))


def _way_out(what: What, name: str, unusable: int) -> str:
    if what == "backend" and name in _BACKEND_EXTRAS:
        return f"; install one with `pip install vsr-core[{name}]`"
    if unusable:
        return f"; `vsr plugins` says why {unusable} of the installed plugins cannot be used"
    return "; `vsr plugins` lists what is installed"
