"""Deciding which of the plugins found are imported, and importing those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from ..contract import check_name
from ..errors import ConfigError, PluginConflictError
from .conflicts import names_distribution
from .entry_points import Found
from .intake import Plugin, import_plugin
from .isolation import Failed, explain
from .records import PluginSource
from .settings import PluginSettings, Selection, same_name

__all__ = ["import_all", "name_problem"]


def import_all(found: Sequence[Found], selection: Selection, settings: PluginSettings) -> tuple[Plugin, ...]:
    """Every plugin found, imported unless it is switched off, has no proper name, or shares its name.

    :raises PluginError: the first failure, where the settings are strict.
    """
    plugins: dict[PluginSource, Plugin] = {}
    wanted: list[Found] = []
    for item in found:
        reason = selection.refusal(item.source)
        if reason is None:
            wanted.append(item)
        else:
            plugins[item.source] = Plugin(source=item.source, status="disabled", reason=reason)
    for _, group in groupby(sorted(wanted, key=_spelling), key=_spelling):
        for plugin in _take(tuple(group), settings):
            if settings.strict and plugin.failure is not None:
                raise plugin.error()
            plugins[plugin.source] = plugin
    return tuple(plugin for _, plugin in sorted(plugins.items()))


def name_problem(source: PluginSource) -> Failed | None:
    """What is wrong with a plugin's name, or None."""
    try:
        check_name(source.name, "plugin name")
    except ConfigError as error:
        return Failed(*explain(error), error)
    return None


def _take(group: tuple[Found, ...], settings: PluginSettings) -> Iterator[Plugin]:
    """The plugins of one name: the only one or the winner by precedence imported, the others not."""
    if len(group) == 1:
        yield _import(group[0], settings.timeout)
        return
    name = group[0].source.name
    winners = [item for item in group if names_distribution(settings.precedence.get(name), item.source)]
    claim = f"the plugin name {name!r} is claimed by {' and '.join(item.source.origin for item in group)}"
    for item in group:
        fresh = Plugin(source=item.source)
        if winners == [item]:
            yield _import(item, settings.timeout)
        elif len(winners) == 1:
            reason = f"{claim}: plugins.precedence gives it to {winners[0].source.distribution!r}"
            yield replace(fresh, status="disabled", reason=reason)
        else:
            reason = f"{claim}: neither is used; disable one of them or name the one to use in plugins.precedence"
            failed = Failed(PluginConflictError.__name__, reason)
            yield fresh.failed("register", failed, kind=PluginConflictError)


def _import(item: Found, timeout: float) -> Plugin:
    problem = name_problem(item.source)
    if problem is not None:
        return Plugin(source=item.source).failed("register", problem)
    return import_plugin(item.source, item.entry_point.load, timeout=timeout)


def _spelling(item: Found) -> str:
    return same_name(item.source.name)
