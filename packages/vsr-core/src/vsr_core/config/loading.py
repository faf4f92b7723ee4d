"""Loading a configuration: read, expand, validate, resolve; and say everything that is wrong at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..contract import BackendId
from .configuration import Configuration
from .document import Document, read_document
from .environment import Expansion, expand_references
from .explain import closest, explain
from .origin import KeyPath, Origin, Problem, raise_problems
from .roles import ResolvedRoles, resolve_roles
from .schema import BackendSettings, ConfigDocument

__all__ = ["load_config"]

_UNIT_DEPTH: Mapping[str, int] = {"catalog": 2, "backends": 2, "signals": 2, "prices": 2, "tenants": 2, "roles": 3}
"""How long the path of what is left out is, where something in it is wrong; 1 for the other sections."""

_SLIP = 0.9


def load_config(
    source: Path | str | Mapping[str, Any] | None, *, environ: Mapping[str, str] | None = None
) -> Configuration:
    """Load a configuration.

    :param source: a YAML or JSON file, a mapping of the same shape, or None for an empty configuration.
    :param environ: the variables that ``${NAME}`` refers to; those of the process by default.
    :raises ConfigError: every problem at once, one line each: ``file:line: key.path: message``.
    """
    document = read_document(source)
    expansion = expand_references(document.data, document.origin, environ=os.environ if environ is None else environ)
    origin = replace(document.origin, hidden=expansion.hidden)
    written, problems, damaged = _validate(expansion, origin, unusable=document.failed | expansion.failed)
    problems += [*document.problems, *expansion.problems, *_slips(expansion.data, origin)]
    catalog = {name: settings.to_entry(name) for name, settings in written.catalog.items()}
    roles = resolve_roles(written.roles, catalog, origin, damaged=damaged)
    raise_problems(origin.label, [*problems, *roles.problems])
    return _configuration(written, roles, document, origin)


def _validate(
    expansion: Expansion, origin: Origin, *, unusable: frozenset[KeyPath]
) -> tuple[ConfigDocument, list[Problem], frozenset[KeyPath]]:
    """What can be used of the tree, what is wrong with the rest, and where that rest is.

    :param unusable: where the tree does not hold what was meant, which has been reported already.
    """
    data = {key: value for key, value in expansion.data.items() if value is not None}
    findings: list[tuple[KeyPath, Problem]] = []
    try:
        written = ConfigDocument.model_validate(data)
    except ValidationError as error:
        findings = explain(error, ConfigDocument, origin)
    else:
        if not unusable:
            return written, [], unusable
    problems = [problem for path, problem in findings if not _follows(path, problem, unusable)]
    damaged = frozenset(_unit(path) for path in (*(path for path, _ in findings), *unusable) if path)
    return ConfigDocument.model_validate(_without(data, damaged)), problems, damaged


def _unit(path: KeyPath) -> KeyPath:
    return path[: _UNIT_DEPTH.get(str(path[0]), 1)]


def _follows(path: KeyPath, problem: Problem, unusable: Iterable[KeyPath]) -> bool:
    """Whether a finding only follows from a value that could not be read."""
    return any(
        path[: len(one)] == one or (problem.code == "contradiction" and one[: len(path)] == path) for one in unusable
    )


def _without(data: Mapping[str, Any], damaged: Iterable[KeyPath]) -> dict[str, Any]:
    """A copy of the tree without the parts at these paths."""
    return {
        key: _without(value, inner) if isinstance(value, Mapping) and inner else value
        for key, value in data.items()
        if () not in (inner := [path[1:] for path in damaged if path[0] == key])
    }


def _slips(data: Mapping[str, Any], origin: Origin) -> list[Problem]:
    """Keys of backends that are a core key but for a slip; without this they would pass for options of the adapter."""
    known = tuple(BackendSettings.model_fields)
    backends = data.get("backends")
    return [
        origin.problem(("backends", name, key), f"unknown key{meant}", code="unknown_key")
        for name, settings in (backends.items() if isinstance(backends, Mapping) else ())
        for key in (settings if isinstance(settings, Mapping) else ())
        if (meant := closest(key, known, cutoff=_SLIP)) and not any(key.rstrip("s") == one.rstrip("s") for one in known)
    ]


def _configuration(written: ConfigDocument, roles: ResolvedRoles, document: Document, origin: Origin) -> Configuration:
    return Configuration(
        path=document.path,
        catalog={name: settings.to_entry(name) for name, settings in sorted(written.catalog.items())},
        instances={name: settings.to_instance(name) for name, settings in sorted(written.backends.items())},
        roles=roles.table,
        role_targets=roles.targets,
        role_policies={
            (kind, role): settings.policies
            for kind, table in written.roles.items()
            for role, settings in table.items()
            if settings.policies
        },
        routing=written.routing,
        signals=written.signals,
        prices={BackendId.parse(name): price.to_price() for name, price in written.prices.items()},
        tenants=written.tenants,
        ledger=written.ledger,
        server=written.server,
        plugins=written.plugin_settings(),
        origin=origin,
    )
