"""The trials of one backend: a model for each cell it claims, its features, its devices, and its refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from ...contract import Choice, Refused
from ...errors import LoadError
from ...plugins import UNASKED, BackendInstances, ReceiptCell
from ...taxonomy import Artifact, Capability, Feature
from ..conformance.claims import demand
from ..conformance.features import EXERCISES
from ..conformance.folders import HEADS
from ..conformance.offers import Cell, claims, feature_claims, first_claims
from ..conformance.subject import Model
from ..conformance.workbench import Workbench
from .checks import Subject, allowed_gap, examine, rank_by_vectors, similar_by_vectors
from .materials import FAMILIES, Materials
from .refusals import RefusalGroup, provoke, refusal_groups
from .trials import Findings, NotRunError, Trial

__all__ = ["BackendTrials"]

_ACCELERATOR: Final = "cuda"
"""The device that is tried beside those a probe found, so that a receipt says why it is not there."""

_DERIVED: Final = {Capability.SIMILARITY: similar_by_vectors, Capability.BIENCODER_RERANKING: rank_by_vectors}


class BackendTrials:
    """Iterates over the trials of one backend instance.

    :param bench: opens the backend in a host of its own.
    """

    def __init__(
        self, name: str, instances: BackendInstances, materials: Materials, *, bench: Callable[[], Workbench]
    ) -> None:
        self._name = name
        self._instances = instances
        self._materials = materials
        self._bench = bench
        self._rules = instances.declared(name)

    def __iter__(self) -> Iterator[Trial]:
        cells = [*self._claims()]
        for cell in cells:
            yield self._trial(cell, self._serve)
        for cell in feature_claims(self._rules, cells):
            yield self._trial(cell, self._exercise)
        first = first_claims(cells)
        for cell in first:
            yield from self._derived(cell)
            yield from self._devices(cell)
        for group in refusal_groups(self._rules, families=self._instances.host.families):
            yield self._refusal(group)

    def _claims(self) -> Iterator[Cell]:
        """What is claimed; one family stands for all where the backend tells none apart."""
        families = [*dict.fromkeys(FAMILIES.values())]
        for cell in claims(self._rules, families=families, artifacts=(Artifact.FULL,)):
            if self._rules.families(cell.capability) or FAMILIES.get(cell.capability, families[0]) == cell.family:
                yield cell

    def _trial(self, cell: Cell, run: Callable[[Cell], Findings]) -> Trial:
        return Trial(
            name=f"{self._name}: {cell}",
            cell=ReceiptCell(
                backend=self._name,
                capability=cell.capability,
                claim="supported",
                state="not_run",
                family=cell.family,
                artifact=cell.artifact,
                feature=cell.feature,
            ),
            run=lambda: self._run(cell, run),
        )

    def _run(self, cell: Cell, run: Callable[[Cell], Findings]) -> Findings:
        found = self._instances.probe(self._name)
        if not found.usable:
            raise NotRunError(f"the backend cannot be used here: {found.reason}")
        return run(cell)

    def _serve(self, cell: Cell) -> Findings:
        material = self._materials.get(cell)
        with self._bench().open() as bench, bench.runtime({"m": material.entry}) as runtime:
            subject = Subject(runtime=runtime, model=f"{self._name}:m", capability=cell.capability)
            return replace(examine(subject, self._rules), checkpoint=material.name)

    def _exercise(self, cell: Cell) -> Findings:
        if cell.feature is None or cell.feature not in EXERCISES:
            raise NotRunError(f"there is no exercise for {cell.feature}")
        material = self._materials.get(cell)
        with self._bench().open() as bench:
            model = Model(cell=cell, entry=material.entry, bench=bench)
            info = model.load(name="first").info
            allowed = allowed_gap(info)
            EXERCISES[cell.feature](model, allowed)
        return Findings(checks=(f"exercised {cell.feature}",), info=info, allowed=allowed, checkpoint=material.name)

    def _derived(self, cell: Cell) -> Iterator[Trial]:
        """What core computes from what a cell answers."""
        for capability in Capability:
            if capability.derived_from is cell.capability and capability not in UNASKED:
                trial = self._trial(cell, partial(self._derive, capability=capability))
                yield replace(
                    trial, name=f"{self._name}: {capability}", cell=replace(trial.cell, capability=capability)
                )

    def _derive(self, cell: Cell, *, capability: Capability) -> Findings:
        if capability not in _DERIVED:
            raise NotRunError(f"there is no trial for {capability}")
        material = self._materials.get(cell)
        with self._bench().open() as bench, bench.runtime({"m": material.entry}) as runtime:
            return replace(_DERIVED[capability](runtime, f"{self._name}:m"), checkpoint=material.name)

    def _devices(self, cell: Cell) -> Iterator[Trial]:
        """Each device of this host, and one that most hosts lack, required."""
        chosen = replace(cell, feature=Feature.PROVIDER_SELECTION)
        if isinstance(chosen.verdict(self._rules), Refused) or cell.capability not in HEADS:
            return
        for device in dict.fromkeys([*self._instances.probe(self._name).devices, _ACCELERATOR]):
            trial = self._trial(chosen, partial(self._require, device=device))
            asked = Choice(requested=f"require:{device}")
            yield replace(
                trial, name=f"{self._name}: {cell.capability} on {device}", cell=replace(trial.cell, device=asked)
            )

    def _require(self, cell: Cell, *, device: str) -> Findings:
        material = self._materials.get(cell)
        with (
            self._bench().open() as bench,
            bench.runtime({"m": material.entry}, device=f"require:{device}") as runtime,
        ):
            try:
                info = runtime.load(f"{self._name}:m")
            except LoadError as error:
                raise NotRunError(error.message) from error
            actual = info.device.actual if info.device is not None else None
            demand((actual or "").startswith(device), f"{device} was required, and {actual} was had")
            return replace(
                examine(Subject(runtime=runtime, model=f"{self._name}:m", capability=cell.capability), self._rules),
                checkpoint=material.name,
            )

    def _refusal(self, group: RefusalGroup) -> Trial:
        query = group.queries[0]
        one = len(group.queries) == 1

        return Trial(
            name=f"{self._name}: refusing {group.capability}" + (f" {group.feature}" if group.feature else ""),
            cell=ReceiptCell(
                backend=self._name,
                capability=group.capability,
                claim="refused",
                state="not_run",
                family=query.family if one else None,
                artifact=query.artifact if one else None,
                feature=group.feature,
            ),
            run=lambda: provoke(group, self._name, self._instances),
        )
