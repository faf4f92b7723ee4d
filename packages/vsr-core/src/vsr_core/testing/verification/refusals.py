"""Provoking what a backend refuses, as a request does: the planner is asked for it before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...contract import BackendId, CapabilityQuery, CapabilitySet, CatalogEntry, ModelSpec, Refused, RoleTable
from ...errors import CapabilityUnmetError
from ...plugins import UNASKED, BackendInstances, verdict_on
from ...routing import Planner, Requirements, Resolver
from ...taxonomy import Artifact, Capability, Feature, Modality
from ..conformance.claims import demand
from .trials import Findings

__all__ = ["RefusalGroup", "provoke", "refusal_groups"]

_MODEL = "asked-for"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalGroup:
    """The queries for one capability, and one feature if any, that are refused for one reason."""

    capability: Capability
    feature: Feature | None
    refused: Refused
    queries: tuple[CapabilityQuery, ...]


def refusal_groups(rules: CapabilitySet, *, families: Iterable[str]) -> list[RefusalGroup]:
    """Everything refused of any capability, family and form of weights, and of features what is refused of a claim."""
    groups: dict[tuple[Capability, Feature | None, Refused], list[CapabilityQuery]] = {}
    for query in _queries([*families]):
        verdict = verdict_on(rules, query)
        if isinstance(verdict, Refused):
            refused_anyway = query.capability in UNASKED or not rules.supports(_without_feature(query))
            if query.feature is not None and refused_anyway:
                continue
            groups.setdefault((query.capability, query.feature, verdict), []).append(query)
    return [
        RefusalGroup(capability=capability, feature=feature, refused=refused, queries=tuple(queries))
        for (capability, feature, refused), queries in groups.items()
    ]


def provoke(group: RefusalGroup, backend: str, instances: BackendInstances) -> Findings:
    """Ask for each query of a group; each must be refused, with the reason that is declared.

    :raises AssertionError: one is not, or with another reason.
    """
    for query in group.queries:
        features = frozenset() if query.feature is None else frozenset({query.feature})
        needs = Requirements(query.capability.kind, query.capability, features)
        shown = f"{query.family} as {query.artifact}" + (f" with {query.feature}" if query.feature else "")
        try:
            _planner(query, instances).plan(needs, str(BackendId(backend, _MODEL)))
        except CapabilityUnmetError as error:
            expected = _reason(group.refused, query.capability)
            demand(error.reason == expected, f"{shown} is refused with {error.reason!r}, declared is {expected!r}")
        else:
            raise AssertionError(
                f"{shown} is declared to be refused ({group.refused.reason}), and a request is planned"
            )
    count = len(group.queries)
    return Findings(checks=(f"{count} combinations refused before anything was loaded",), reason=group.refused.reason)


def _queries(families: list[str]) -> Iterator[CapabilityQuery]:
    for capability in Capability:
        for family in families:
            for artifact in Artifact:
                for feature in (None, *Feature):
                    yield CapabilityQuery(
                        capability=capability,
                        family=family,
                        artifact=artifact,
                        modality=Modality.TEXT,
                        feature=feature,
                    )


def _without_feature(query: CapabilityQuery) -> CapabilityQuery:
    return CapabilityQuery(
        capability=query.capability.derived_from or query.capability,
        family=query.family,
        artifact=query.artifact,
        modality=query.modality,
    )


def _reason(refused: Refused, capability: Capability) -> str:
    """The reason a request is told; of what core derives it is that of what it is derived from."""
    source = capability.derived_from
    return refused.reason if source is None else refused.reason.removeprefix(f"it is computed from {source}: ")


class _OneModel:
    """The specification of the one model that is asked for."""

    learned = 0

    def __init__(self, query: CapabilityQuery) -> None:
        self._spec = ModelSpec(
            capabilities=(query.capability.derived_from or query.capability,),
            family=query.family or "",
            artifact=query.artifact or Artifact.FULL,
        )

    def spec(self, backend_id: BackendId) -> ModelSpec | None:
        return self._spec if backend_id.model == _MODEL else None


def _planner(query: CapabilityQuery, instances: BackendInstances) -> Planner:
    catalog = {_MODEL: CatalogEntry(name=_MODEL, source="made-up")}
    resolver = Resolver(RoleTable({}), catalog, backends_for=lambda _: ())
    return Planner(resolver, catalog, backends=instances, specs=_OneModel(query))
