"""Filtering the ids a name stands for down to those that can do what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..contract import (
    BackendDescriptor,
    BackendId,
    CapabilityQuery,
    CapabilitySet,
    CatalogEntry,
    Drop,
    ModelSpec,
    Refused,
    Supported,
)
from ..errors import CapabilityUnmetError, ModelNotFoundError, VsrError
from ..plugins import UNASKED
from ..taxonomy import Capability, Kind
from .plan import Plan, PlannedCandidate
from .requirements import Requirements
from .resolve import Resolver

__all__ = ["Backends", "Planner", "Specs"]

_KEPT = 1024
"""How many plans are kept; names come from callers, so there is no end to them."""


class Backends(Protocol):
    """What planning asks of the installed backends."""

    def names(self) -> tuple[str, ...]:
        """Every instance's name, sorted."""
        ...

    def descriptor(self, name: str) -> BackendDescriptor:
        """The descriptor behind an instance."""
        ...

    def declared(self, name: str) -> CapabilitySet:
        """What an instance declares."""
        ...


class Specs(Protocol):
    """What planning asks of the models."""

    @property
    def learned(self) -> int:
        """Grows whenever something new is known of a model."""
        ...

    def spec(self, backend_id: BackendId) -> ModelSpec | None:
        """What is known of a model without loading or downloading it."""
        ...


class Planner:
    """Plans requests. A plan is kept until something new is learned of a model's files, or too many are kept."""

    def __init__(
        self, resolver: Resolver, catalog: Mapping[str, CatalogEntry], *, backends: Backends, specs: Specs
    ) -> None:
        self._resolver = resolver
        self._catalog = catalog
        self._backends = backends
        self._specs = specs
        self._plans: dict[tuple[Requirements, str], Plan] = {}
        self._learned = specs.learned

    def plan(self, needs: Requirements, model: str) -> Plan:
        """The candidates for a request, in order.

        :raises InvalidInputError: ``model`` is malformed.
        :raises ModelNotFoundError: ``model``, or the first id it stands for, does not exist.
        :raises CapabilityUnmetError: nobody it stands for can do what is needed; names the first candidate's first
            unmet requirement.
        :raises PluginError: the first candidate's backend is installed but broken.
        """
        if self._learned != self._specs.learned or len(self._plans) >= _KEPT:
            self._plans, self._learned = {}, self._specs.learned
        known = self._plans.get((needs, model)) if isinstance(model, str) else None
        if known is not None:
            return known
        plan = self._make(needs, model)
        self._plans[needs, model] = plan
        return plan

    def kinds_of(self, name: str) -> frozenset[Kind]:
        """The kinds in which a name is a role."""
        return self._resolver.kinds_of(name)

    def serving(self, entry: CatalogEntry) -> tuple[str, ...]:
        """The installed backends that can serve an entry for anything it is for, sorted."""
        return tuple(name for name in self._backends.names() if self._can_serve(BackendId(name, entry.name)))

    def reason_against(self, backend_id: BackendId) -> str | None:
        """Why a backend would refuse a catalog model whatever is asked of it; None where it would not."""
        if backend_id.model not in self._catalog:
            return None
        first: VsrError | None = None
        for capability in Capability:
            if capability.derived_from is None:
                try:
                    self._admit(Requirements.of(capability.kind, capability), backend_id)
                except VsrError as error:
                    first = first or error
                else:
                    return None
        return first.message if first is not None else None

    def _can_serve(self, backend_id: BackendId) -> bool:
        try:
            spec = self._specs.spec(backend_id)
            rules = self._backends.declared(backend_id.backend)
        except VsrError:
            return False
        if spec is None:
            stated = self._catalog[backend_id.model].capabilities or tuple(Capability)
            return any(isinstance(rules.overview(capability), Supported) for capability in stated)
        return any(
            rules.supports(CapabilityQuery(capability=capability, family=spec.family, artifact=spec.artifact))
            for capability in spec.capabilities or (Capability.EMBEDDING,)
        )

    def _make(self, needs: Requirements, model: str) -> Plan:
        group = self._resolver.group(needs.kind, model)
        if group is None:
            group = self._implicit_default(needs)
        elif not group:
            raise self._refusal(needs, self._catalog[model]) or self._nobody(model)
        kept: list[PlannedCandidate] = []
        drops: list[Drop] = []
        first_error: VsrError | None = None
        for backend_id in group:
            try:
                kept.append(self._admit(needs, backend_id))
            except VsrError as error:
                first_error = first_error or error
                drops.append(Drop(backend_id=backend_id, reason=error.message))
        if not kept:
            raise first_error or self._nobody(model)
        return Plan(
            kind=needs.kind,
            logical_name=model,
            capability=needs.capability,
            candidates=tuple(kept),
            drops=tuple(drops),
        )

    def _nobody(self, model: str) -> ModelNotFoundError:
        return ModelNotFoundError(f"no installed backend serves {model!r}; `vsr check` says why", name=model)

    def _implicit_default(self, needs: Requirements) -> tuple[BackendId, ...]:
        """Where nobody defined ``default``: the one catalog model that can do what is needed, if there is one."""
        refusals: list[VsrError] = []
        able: list[CatalogEntry] = []
        for _, entry in sorted(self._catalog.items()):
            refusal = self._refusal(needs, entry)
            if refusal is None:
                able.append(entry)
            else:
                refusals.append(refusal)
        if len(able) == 1:
            return self._resolver.expand(able[0])
        if not able and len(refusals) == 1:
            raise refusals[0]
        found = f"{len(able)} models could serve it" if able else "no model in the catalog could serve it"
        raise ModelNotFoundError(
            f"no {needs.kind} role is called 'default' and {found}; set roles.{needs.kind}.default or pass model=",
            name="default",
        )

    def _refusal(self, needs: Requirements, entry: CatalogEntry) -> VsrError | None:
        """Why no backend can serve an entry for what is needed, with each one's reason; None where one can."""
        refusals: list[CapabilityUnmetError] = []
        for backend_id in self._resolver.expand(entry) or self.everywhere(entry):
            try:
                self._admit(needs, backend_id)
            except CapabilityUnmetError as error:
                refusals.append(error)
            except VsrError as error:
                return error
            else:
                return None
        if len(refusals) == 1:
            return refusals[0]
        reasons = "; ".join(f"{error.backend_id}: {error.reason or error.message}" for error in refusals)
        return CapabilityUnmetError(
            f"no installed backend offers {needs.capability} for {entry.name!r}"
            + (f" ({reasons})" if reasons else ": none is installed"),
            unmet=refusals[0].unmet if refusals else needs.capability.value,
            reason=reasons or None,
        )

    def everywhere(self, entry: CatalogEntry) -> tuple[BackendId, ...]:
        """An entry on every backend, for the reasons why none serves it."""
        return tuple(BackendId(name, entry.name) for name in self._backends.names())

    def _admit(self, needs: Requirements, backend_id: BackendId) -> PlannedCandidate:
        """How a candidate would be asked, or the reason it is left out."""
        entry = self._entry(backend_id)
        spec = self._specs.spec(backend_id)
        if entry is not None and entry.backends and backend_id.backend not in entry.backends:
            raise CapabilityUnmetError(
                f"{backend_id}: the catalog allows {entry.name!r} on {', '.join(entry.backends)} only",
                unmet="backend",
                backend_id=str(backend_id),
            )
        if needs.capability in UNASKED:
            raise _unmet(UNASKED[needs.capability], backend_id, needs.capability.value)
        refusal: CapabilityUnmetError | None = None
        for asks, derives in _ways(needs.capability):
            try:
                self._check(backend_id, spec, asks, needs)
            except CapabilityUnmetError as error:
                refusal = refusal or error
                continue
            return PlannedCandidate(backend_id, asks, derives)
        raise refusal or self._nobody(str(backend_id))

    def _entry(self, backend_id: BackendId) -> CatalogEntry | None:
        if backend_id.backend not in self._backends.names():
            self._backends.descriptor(backend_id.backend)
        entry = self._catalog.get(backend_id.model)
        if entry is None and not self._backends.descriptor(backend_id.backend).open_namespace:
            raise ModelNotFoundError(
                f"{backend_id}: the catalog has no model called {backend_id.model!r}", name=str(backend_id)
            )
        return entry

    def _check(
        self, backend_id: BackendId, spec: ModelSpec | None, capability: Capability, needs: Requirements
    ) -> None:
        if spec is not None and not spec.capabilities:
            reason = "it is there for its adapters; state 'pooling' to have vectors of its own"
            raise CapabilityUnmetError(
                f"{backend_id} does not offer {needs.capability}: {reason}",
                unmet=needs.capability.value,
                backend_id=str(backend_id),
                reason=reason,
            )
        if spec is not None and capability not in spec.capabilities:
            offered = ", ".join(item.value for item in spec.capabilities)
            raise CapabilityUnmetError(
                f"{backend_id} does not offer {needs.capability}: the model is for {offered}",
                unmet=needs.capability.value,
                backend_id=str(backend_id),
                reason=f"the model is for {offered}",
            )
        rules = self._backends.declared(backend_id.backend)
        cell = CapabilityQuery(
            capability=capability,
            family=spec.family if spec is not None else None,
            artifact=spec.artifact if spec is not None else None,
            modality=spec.modality if spec is not None else None,
        )
        if spec is not None or not rules.families(capability):
            _demand(rules, cell, backend_id, needs.capability.value)
        for feature in sorted(needs.features, key=lambda item: item.code):
            query = CapabilityQuery(
                capability=capability,
                family=cell.family,
                artifact=cell.artifact,
                modality=cell.modality,
                feature=feature,
            )
            _demand(rules, query, backend_id, feature.value)


def _demand(rules: CapabilitySet, query: CapabilityQuery, backend_id: BackendId, unmet: str) -> None:
    verdict = rules.decide(query)
    if isinstance(verdict, Refused):
        raise _unmet(verdict, backend_id, unmet)


def _unmet(refused: Refused, backend_id: BackendId, unmet: str) -> CapabilityUnmetError:
    return CapabilityUnmetError(
        f"{backend_id} does not offer {unmet}: {refused.reason}",
        unmet=unmet,
        backend_id=str(backend_id),
        reason=refused.reason,
    )


def _ways(capability: Capability) -> tuple[tuple[Capability, Capability | None], ...]:
    """What may be asked of a backend to give a capability, and what core then computes from the answer."""
    if capability.derived_from is not None:
        return ((capability.derived_from, capability),)
    if capability is Capability.RERANKING:
        return ((Capability.RERANKING, None), (Capability.EMBEDDING, Capability.BIENCODER_RERANKING))
    return ((capability, None),)
