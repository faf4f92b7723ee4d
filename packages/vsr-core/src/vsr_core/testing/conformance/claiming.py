"""Every claim is put to the test, and every refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ...contract import Refused
from ...errors import CapabilityError
from ...taxonomy import Artifact, Capability, Feature
from .asking import TEXTS, answer, question
from .claims import demand
from .features import EXERCISES, answers_through_a_runtime, asked
from .folders import Folders
from .offers import Cell
from .subject import BackendSubject, Model
from .workbench import Entry, Workbench

__all__ = ["Claiming"]

Make = Callable[[Cell | Exception], Model]


class Claiming(BackendSubject):
    """Tests of what is declared, cell by cell, on tiny checkpoints."""

    def exercise(self, model: Model) -> None:
        """Put the feature of a cell to the test. Override it for features the kit has no exercise for.

        :raises AssertionError: the feature does not do what it is for.
        """
        feature = model.cell.feature
        if feature is None or feature not in EXERCISES:
            raise NotImplementedError(f"the kit has no exercise for {feature}: give one in exercise()")
        EXERCISES[feature](model, self.tolerance)

    def test_a_claimed_capability_is_answered(self, claimed: Cell | Exception, make_model: Make) -> None:
        """With a model of the family and form of weights, through the host and a runtime."""
        answers_through_a_runtime(make_model(claimed))

    def test_a_claimed_feature_works(self, claimed_feature: Cell | Exception, make_model: Make) -> None:
        """Each feature by what it is for; see :meth:`exercise`."""
        self.exercise(make_model(claimed_feature))

    def test_a_refused_kind_of_model_is_refused_before_it_is_loaded(
        self, refused: Cell | Exception, bench: Workbench, folders: Folders
    ) -> None:
        """With the reason that the adapter advertises."""
        cell = self._runnable(refused)
        self._expect_refusal(bench, cell, self._unread(cell, folders))

    def test_a_refused_feature_is_refused_before_anything_is_loaded(
        self, refused_feature: Cell | Exception, bench: Workbench, folders: Folders
    ) -> None:
        """With the reason that the adapter advertises, whoever asks for it."""
        cell = self._runnable(refused_feature)
        self._expect_refusal(bench, cell, self.entry(cell, folders), cell.feature)

    def test_a_loaded_model_claims_no_feature_that_is_refused(
        self, told_apart: Cell | Exception, make_model: Make, bench: Workbench
    ) -> None:
        """``ModelInfo.features`` may take a feature away from a model, and not give one to it."""
        model, rules = make_model(told_apart), bench.declared()
        for state in model.load().info.features:
            verdict = replace(model.cell, feature=state.feature).verdict(rules)
            if state.supported and isinstance(verdict, Refused):
                raise AssertionError(
                    f"{state.feature} is refused ({verdict.reason}), and a loaded model lists it as supported: declare"
                    " it in capabilities(), or say with features= of build_encoder() that the model lacks it"
                )
            demand(state.supported or state.reason, f"{state.feature} is listed as not there without a reason")

    def test_a_handle_refuses_what_its_model_is_not_for(self, first: Cell | Exception, make_model: Make) -> None:
        """A request for another capability is a ``CapabilityError`` that names the model."""
        handle = make_model(first).load()
        for other in {cell.capability for cell in self._cells(lambda _, cells: cells)} - {*handle.info.capabilities}:
            with pytest.raises(CapabilityError) as caught:
                answer(handle, question(other, TEXTS))
            named = caught.value.backend_id
            demand(named == str(handle.info.backend_id), f"the refusal of {other} names {named!r}")

    def _expect_refusal(self, bench: Workbench, cell: Cell, entry: Entry, feature: Feature | None = None) -> None:
        advertised = cell.verdict(bench.instances.adapter(self.backend).capabilities())
        requires = [feature.value] if feature is not None else []
        name = f"{self.backend}:m"
        with bench.runtime({"m": entry}) as runtime:
            with pytest.raises(CapabilityError) as caught:
                asked(runtime, cell.capability, name, requires=requires)
            (info,) = (info for info in runtime.models() if str(info.backend_id) == name)
        reason = advertised.reason if isinstance(advertised, Refused) else f"none: it advertises {advertised}"
        demand(caught.value.reason == reason, f"refused because {caught.value.reason!r}, advertised is {reason!r}")
        demand(info.state == "not_loaded", f"the model is {info.state} after a refusal")

    def _unread(self, cell: Cell, folders: Folders) -> Entry:
        """A model that is not to be loaded: a checkpoint, or a folder that looks like a graph's until it is read."""

        def write(folder: Path) -> Path:
            written = self.write_checkpoint(folder, family=cell.family, capability=cell.capability, seed=0)
            if cell.artifact is not Artifact.FULL:
                (written / "model.safetensors").rename(written / "model.onnx")
            return written

        folder = folders.get((self._writer(), cell.family, cell.capability, cell.artifact, "unread"), write)
        pooling = {"pooling": ["mean"]} if cell.capability is Capability.EMBEDDING else {}
        return {"source": str(folder), "artifact": cell.artifact.value, **pooling}
