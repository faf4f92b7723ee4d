"""What becomes of files that are damaged, of numbers that are none, and of requests that cannot be served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ...contract import EmbeddingRequest, ModelHandle
from ...errors import CapabilityError, InvalidInputError, VsrError
from ...taxonomy import Capability
from .answers import check_answer
from .asking import TEXTS, answer, question
from .claims import demand
from .folders import Folders, cut, poison
from .offers import Cell
from .subject import BackendSubject, Model

__all__ = ["Failing"]

Make = Callable[[Cell | Exception], Model]

_NO_LAYER = 99


class Failing(BackendSubject):
    """Tests of errors: typed, before an answer exists, and with the way out in their message."""

    def test_numbers_that_are_none_never_become_an_answer(
        self, first: Cell | Exception, make_model: Make, folders: Folders
    ) -> None:
        """With NaN in the weights the load or the request fails with a typed error."""
        model = make_model(first)
        try:
            entry = self.entry(model.cell, folders, spoil=poison)
        except VsrError as error:
            pytest.skip(f"such a checkpoint cannot be converted: {error.message}")
        request = question(model.cell.capability, TEXTS)
        try:
            response = answer(model.bench.load(entry), request)
        except VsrError as error:
            demand(error.message.strip(), f"a {type(error).__name__} without a message")
        else:
            check_answer(request, response)

    @pytest.mark.parametrize("damage", ["cut in half", "emptied", "made of noise"])
    def test_damaged_weights_are_refused(
        self, first: Cell | Exception, make_model: Make, folders: Folders, damage: str
    ) -> None:
        """By a typed error that names the file or the model, and never by an answer."""
        model = make_model(first)
        folder = folders.copy(Path(model.entry["source"]))
        for name in model.bench.request(model.entry).spec.weights:
            _damage(folder / name, damage)
        with pytest.raises(VsrError) as caught:
            model.bench.load({**model.entry, "source": str(folder)})
        message = caught.value.message
        demand(str(folder) in message or ":m" in message, f"the error names neither file nor model: {message!r}")

    def test_a_layer_the_model_lacks_is_refused(self, first: Cell | Exception, make_model: Make) -> None:
        """An ``InvalidInputError``, or the ``CapabilityError`` of a model that has one depth alone."""
        model = make_model(first)
        if model.cell.capability is Capability.RERANKING:
            pytest.skip("its requests name no layer")
        self._refused(model.load(), question(model.cell.capability, TEXTS, layer=_NO_LAYER), str(_NO_LAYER))

    def test_dimensions_the_model_lacks_are_refused(self, first: Cell | Exception, make_model: Make) -> None:
        """Likewise; more than there are, and a number that nobody offered."""
        model = make_model(first)
        if model.cell.capability is not Capability.EMBEDDING:
            pytest.skip("its requests name no dimensions")
        handle = model.load()

        for width in (3, 100_000):
            self._refused(handle, EmbeddingRequest(texts=TEXTS, dimensions=width), str(width))

    def _refused(self, handle: ModelHandle, request: Any, number: str) -> None:
        with pytest.raises((InvalidInputError, CapabilityError)) as caught:
            answer(handle, request)
        named = isinstance(caught.value, CapabilityError) or number in caught.value.message
        demand(named, f"the error does not name what was asked for: {caught.value.message!r}")


def _damage(path: Path, how: str) -> None:
    if how == "cut in half":
        cut(path)
    else:
        path.write_bytes(b"" if how == "emptied" else bytes(range(256)) * 16)
