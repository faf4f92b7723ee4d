"""Writes docs/capabilities.md from what the installed backends declare: ``hatch run capabilities``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from vsr_core.contract import Supported
from vsr_core.plugins import UNASKED, BackendInstances, InstanceSettings, PluginHost
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_core.testing.conformance import Cell
from vsr_core.testing.verification.refusals import RefusalGroup, refusal_groups

from tests.evidence import DERIVED, SUITES, Evidence

__all__ = ["PAGE", "page", "unproven"]

PAGE = Path(__file__).parents[1] / "docs" / "capabilities.md"

_INTRODUCTION = """# What the backends can do

This page is written by `hatch run capabilities` from what the backends declare; a test fails where it is out of date, and
where something is claimed that no test stands behind. `vsr matrix --why` shows the same of an installation, and
`vsr verify` tries it there.

Tests without a file are those of the suite that is named with the backend, which `hatch run parity` runs; `*` stands for
each family of the line. A feature is shown by one test for each capability, and for each family where families differ
in it. That the engines agree in what they answer is shown by `tests/test_parity.py`.
"""

_EVERY = "any"
_STAND_IN = "bert"
"""The family that stands for all where a backend tells none apart."""


def page(host: PluginHost) -> str:
    """The whole page."""
    instances = _instances(host)
    try:
        parts = [_INTRODUCTION, *(_backend(name, host, instances) for name in instances.names()), _derived()]
        return "\n".join(parts)
    finally:
        asyncio.run(instances.close())


def unproven(host: PluginHost) -> list[str]:
    """The claims behind which there is no test."""
    instances = _instances(host)
    try:
        return [
            f"{name}: {cell}"
            for name in instances.names()
            for cell, evidence in _claimed(name, instances)
            if evidence is None
        ]
    finally:
        asyncio.run(instances.close())


def _instances(host: PluginHost) -> BackendInstances:
    """Every backend as an instance of itself, also those that need a configuration."""
    return BackendInstances(host, {name: InstanceSettings(name=name, adapter=name) for name in host.backends})


def _claimed(name: str, instances: BackendInstances) -> Iterator[tuple[Cell, str | None]]:
    """Every claim, with and without features, and the test behind it."""
    rules = instances.declared(name)
    evidence = Evidence(name, rules) if name in SUITES else None
    for capability in Capability:
        if capability.derived_from is not None:
            continue
        for family in rules.families(capability) or (_STAND_IN,):
            for artifact in Artifact:
                for feature in (None, *Feature):
                    cell = Cell(capability=capability, family=family, artifact=artifact, feature=feature)
                    plain = Cell(capability=capability, family=family, artifact=artifact)
                    if isinstance(cell.verdict(rules), Supported) and isinstance(plain.verdict(rules), Supported):
                        yield cell, evidence.of(cell) if evidence is not None else None


def _backend(name: str, host: PluginHost, instances: BackendInstances) -> str:
    claimed = [*_claimed(name, instances)]
    parts = [f"## {name}", "", f"{host.backends[name].descriptor.summary}.", ""]
    if claimed:
        parts += [f"Suite: `{'::'.join(SUITES[name])}`", ""]
        parts += ["### Served", "", *_served(claimed, named=_names_families(name, instances)), ""]
        parts += ["With these features:", "", *_features(claimed), ""]
    parts += ["### Refused", "", *_refused(name, host, instances, [cell for cell, _ in claimed]), ""]
    suite = "::".join(SUITES[name]) if claimed else None
    return "\n".join(part if suite is None else part.replace(f"`{suite}::", "`") for part in parts)


def _names_families(name: str, instances: BackendInstances) -> bool:
    return any(instances.declared(name).families(capability) for capability in Capability)


def _served(claimed: Sequence[tuple[Cell, str | None]], *, named: bool) -> Iterator[str]:
    yield from _head("capability", "weights", "families", "shown by")
    plain = [(cell, evidence) for cell, evidence in claimed if cell.feature is None]
    for capability, artifact in dict.fromkeys((cell.capability, cell.artifact) for cell, _ in plain):
        about = [pair for pair in plain if (pair[0].capability, pair[0].artifact) == (capability, artifact)]
        families = ", ".join(cell.family for cell, _ in about) if named else _EVERY
        yield _row(str(capability), str(artifact), families, _tests(about))


def _features(claimed: Sequence[tuple[Cell, str | None]]) -> Iterator[str]:
    yield from _head("feature", "capability", "not for", "shown by")
    plain = {(cell.capability, cell.family, cell.artifact) for cell, _ in claimed if cell.feature is None}
    for feature, capability in dict.fromkeys((cell.feature, cell.capability) for cell, _ in claimed if cell.feature):
        about = [pair for pair in claimed if (pair[0].feature, pair[0].capability) == (feature, capability)]
        having = {(cell.capability, cell.family, cell.artifact) for cell, _ in about}
        lacking = sorted(each for each in plain - having if each[0] is capability)
        families = {family for _, family, _ in lacking} - {cell.family for cell, _ in about}
        weights = {str(artifact) for _, _, artifact in lacking} - {str(cell.artifact) for cell, _ in about}
        yield _row(str(feature), str(capability), ", ".join(sorted({*families, *weights})) or "-", _tests(about[:1]))


def _refused(name: str, host: PluginHost, instances: BackendInstances, claimed: Sequence[Cell]) -> Iterator[str]:
    yield from _head("capability", "feature", "which", "why")
    groups = refusal_groups(instances.declared(name), families=host.families)
    merged: dict[tuple[str, str, str], list[str]] = {}
    for group in groups:
        if group.capability.derived_from is None and group.refused.code != "undeclared":
            which = _which(group, host, claimed)
            key = (str(group.feature or "-"), which, group.refused.reason)
            merged.setdefault(key, []).append(str(group.capability))
    for (feature, which, reason), capabilities in merged.items():
        yield _row(", ".join(dict.fromkeys(capabilities)), feature, which, reason)


def _which(group: RefusalGroup, host: PluginHost, claimed: Sequence[Cell]) -> str:
    """The families and forms of weights of a refusal, where they are not all that there are, or all that are served."""
    served = [cell for cell in claimed if cell.feature is None]
    families = {query.family for query in group.queries} - {None}
    weights = {query.artifact for query in group.queries} - {None}
    parts = []
    if families not in (set(host.families), {cell.family for cell in served}):
        parts.append(", ".join(sorted(map(str, families))))
    if weights not in (set(Artifact), {cell.artifact for cell in served}):
        parts.append(", ".join(str(each) for each in Artifact if each in weights))
    return "; ".join(parts) or _EVERY


def _derived() -> str:
    lines = [
        "## What the core computes",
        "",
        "From the answers of whichever backend offers what it is computed from:",
        "",
        *_head("capability", "from", "shown by"),
        *(_row(str(each), str(each.derived_from), f"`{DERIVED[each]}`") for each in Capability if each in DERIVED),
        "",
        *(f"Refused whatever a backend declares is `{each}`: {refused.reason}." for each, refused in UNASKED.items()),
        "",
    ]
    return "\n".join(lines)


def _tests(about: Iterable[tuple[Cell, str | None]]) -> str:
    """The tests of several cells, those that differ by their family alone as one."""
    shown = {evidence or "nothing": cell for cell, evidence in about}
    if len(shown) > 1:
        names = [name.replace(f"-{cell.family}-", "-*-", 1) for name, cell in shown.items()]
        return "<br>".join(f"`{name}`" for name in dict.fromkeys(names))
    return "<br>".join(f"`{name}`" for name in shown)


def _head(*columns: str) -> list[str]:
    return [_row(*columns), _row(*("---" for _ in columns))]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> None:
    """Write the page."""
    host = PluginHost.discover(environ={})
    PAGE.write_text(page(host), encoding="utf-8")
    host.close()


if __name__ == "__main__":
    main()
