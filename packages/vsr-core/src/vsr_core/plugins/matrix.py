"""The capability matrix: what every backend instance can do, with which features, and why not otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from ..contract import CapabilityQuery, CapabilitySet, Refused, Supported, Verdict
from ..errors import VsrError
from ..taxonomy import Capability, Feature
from .instances import BackendInstances
from .receipt import Receipt, differences

__all__ = ["UNASKED", "CapabilityMatrix", "CellState", "FeatureCell", "MatrixCell", "verdict_on"]

UNASKED: Final[Mapping[Capability, Refused]] = MappingProxyType(
    {
        Capability.MODALITY_ROUTING: Refused(
            "not_implemented",
            "no call of this version asks for it: ask for the classes of a model that tells modalities apart",
        )
    }
)
"""What core is to compute and does not yet, whatever a backend declares."""

CellState = Literal["refused", "declared", "probed", "verified"]
"""How sure a cell is: said by the backend, found possible on this host, or seen to work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCell:
    """Whether a feature goes with a supported capability, and within which limits or why not."""

    feature: Feature
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """One capability of one backend instance.

    :param families: the families it is supported for by name, sorted; empty where the backend names none.
    :param derived_from: for what the core computes itself, the capability it computes it from.
    :param features: every feature in code order, for a cell that is not refused.
    :param verified: what a receipt has seen to work, as ``family/artifact``, for a cell that is verified.
    """

    backend: str
    capability: Capability
    state: CellState
    verdict: Verdict
    families: tuple[str, ...] = ()
    derived_from: Capability | None = None
    features: tuple[FeatureCell, ...] = ()
    verified: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityMatrix:
    """Every backend instance by every capability, sorted by instance, then in code order of capabilities."""

    cells: tuple[MatrixCell, ...]

    @classmethod
    def of(cls, instances: BackendInstances, *, probe: bool) -> CapabilityMatrix:
        """Ask every instance.

        :param probe: whether to ask for this host as well, which may import frameworks.
        """
        return cls(cells=tuple(cell for name in instances.names() for cell in _row(instances, name, probe=probe)))

    def cell(self, backend: str, capability: Capability) -> MatrixCell | None:
        """One cell, or None where there is no such instance."""
        found = (cell for cell in self.cells if cell.backend == backend and cell.capability is capability)
        return next(found, None)

    def vouched(self, receipt: Receipt) -> CapabilityMatrix:
        """The same matrix, with the cells that a receipt vouches for marked as verified.

        A cell is where nothing of it failed and something of it was seen to work, by a backend whose versions are those
        of this host.
        """
        trusted = {cell.backend for cell in self.cells if not differences(receipt, cell.backend)}
        return CapabilityMatrix(
            cells=tuple(_vouched(cell, receipt) if cell.backend in trusted else cell for cell in self.cells)
        )


def verdict_on(declared: CapabilitySet, query: CapabilityQuery) -> Verdict:
    """The verdict on one query; what the core derives is as possible as what it is derived from."""
    if query.capability in UNASKED:
        return UNASKED[query.capability]
    source = query.capability.derived_from
    if source is None:
        return declared.decide(query)
    return _derived(declared.decide(replace(query, capability=source)), source)


def _vouched(cell: MatrixCell, receipt: Receipt) -> MatrixCell:
    about = [
        each
        for each in receipt.cells
        if (each.backend, each.capability, each.claim) == (cell.backend, cell.capability, "supported")
    ]
    works = [each for each in about if each.state == "verified" and each.feature is None]
    if cell.state == "refused" or not works or any(each.state == "failed" for each in about):
        return cell
    named = {
        f"{each.family}/{each.artifact}" for each in works if each.family is not None and each.artifact is not None
    }
    return replace(cell, state="verified", verified=tuple(sorted(named)))


def _row(instances: BackendInstances, name: str, *, probe: bool) -> Iterator[MatrixCell]:
    obstacle: Refused | None = None
    declared = CapabilitySet()
    try:
        declared = instances.declared(name)
        if probe:
            found = instances.probe(name)
            obstacle = None if found.usable else Refused("unusable", found.reason or "it cannot be used on this host")
    except VsrError as error:
        obstacle = Refused(error.code, error.message)
    for capability in sorted(Capability, key=lambda member: member.code):
        yield _cell(name, capability, declared, obstacle, "probed" if probe else "declared")


def _cell(
    name: str, capability: Capability, declared: CapabilitySet, obstacle: Refused | None, state: CellState
) -> MatrixCell:
    source = capability.derived_from
    asked = source or capability
    unasked = UNASKED.get(capability)
    verdict = obstacle or unasked or declared.overview(asked)
    if source is not None and not (obstacle or unasked):
        verdict = _derived(verdict, source)
    if isinstance(verdict, Refused):
        return MatrixCell(backend=name, capability=capability, state="refused", verdict=verdict, derived_from=source)
    named = {query.family for query in _supported(declared, asked, None) if query.family is not None}
    return MatrixCell(
        backend=name,
        capability=capability,
        state=state,
        verdict=verdict,
        families=tuple(sorted(named)),
        derived_from=source,
        features=tuple(_feature(declared, asked, each) for each in sorted(Feature, key=lambda member: member.code)),
    )


def _feature(declared: CapabilitySet, capability: Capability, feature: Feature) -> FeatureCell:
    """The feature's verdict for whatever family and artifact suits it best."""
    best = next(_supported(declared, capability, feature), CapabilityQuery(capability=capability, feature=feature))
    return FeatureCell(feature=feature, verdict=declared.decide(best))


def _supported(declared: CapabilitySet, capability: Capability, feature: Feature | None) -> Iterator[CapabilityQuery]:
    """The cells for which a rule supports a capability, and no other rule overrules it."""
    for rule in declared.rules:
        selector = rule.selector
        cell = CapabilityQuery(
            capability=capability,
            family=selector.family,
            artifact=selector.artifact,
            modality=selector.modality,
            feature=feature,
        )
        if selector.matches(cell) and isinstance(rule.verdict, Supported) and declared.supports(cell):
            yield cell


def _derived(verdict: Verdict, source: Capability) -> Verdict:
    if isinstance(verdict, Refused):
        return Refused(verdict.code, f"it is computed from {source}: {verdict.reason}")
    return verdict
