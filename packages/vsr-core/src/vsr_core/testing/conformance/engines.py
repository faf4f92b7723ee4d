"""What every in-process engine must do, whatever it runs on."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, get_args

import numpy as np
import pytest

from ...contract import FamilyDescriptor, FloatArray, LoadRequest, PoolingMode, PoolingSpec
from ...errors import VsrError
from ...local import (
    BatchRow,
    BatchShape,
    EncoderEngine,
    IntArray,
    RaggedBatch,
    Want,
    WantHidden,
    WantLogits,
    WantPooled,
    pool,
)
from ..encoders import EncoderHead
from .batches import SEQUENCES, load_request, ragged
from .claims import demand, distance, nearest
from .folders import Folders, poison, session_folders, write_tiny
from .standard import Conformance

__all__ = ["EncoderEngineConformance"]

_SHAPES = ((1, 8, 8), (2, 8, 16), (2, 16, 32), (8, 16, 128), (8, 512, 4096))
"""Sequences, longest and tokens of batches, each at least as large as the one before."""


class EncoderEngineConformance(Conformance):
    """Subclass it, give :meth:`make_engine`, and every engine it makes is held to the seam in ``vsr_core.local``.

    :cvar families: the families to make checkpoints of; ``heads`` the heads.
    :cvar layers: the exit layers that the checkpoints are asked for beside their native depth; empty for engines that
        run to their full depth alone.
    :cvar tolerance: how far two float32 answers to the same question may be apart.
    :cvar contributed: families that the plugin brings itself.
    """

    families: ClassVar[Sequence[str]] = ("bert",)
    heads: ClassVar[Sequence[EncoderHead]] = ("embedding", "sequence", "token")
    layers: ClassVar[tuple[int, ...]] = (1,)
    tolerance: ClassVar[float] = 1e-5
    contributed: ClassVar[Sequence[FamilyDescriptor]] = ()

    def make_engine(self, request: LoadRequest) -> EncoderEngine:
        """The engine for a checkpoint: ``request.path`` is its folder, ``request.spec`` what its files say."""
        raise NotImplementedError("give make_engine: it makes your engine for a load request")

    def write_checkpoint(self, folder: Path, *, family: str, head: EncoderHead) -> Path:
        """Write a tiny checkpoint as HF transformers saves it; override it for families the kit does not know."""
        return write_tiny(folder, family, head=head)

    def convert(self, folder: Path, out: Path) -> Path:
        """Turn a checkpoint into what the engine reads; returns where that is. As it stands by default."""
        del out
        return folder

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Every test of an engine runs for each family and head."""
        if "engine_case" in metafunc.fixturenames:
            cases = [(family, head) for family in self.families for head in self.heads]
            metafunc.parametrize("engine_case", cases, ids=["-".join(case) for case in cases])

    @pytest.fixture
    def folders(self, request: pytest.FixtureRequest) -> Folders:
        """The checkpoints of the session."""
        return session_folders(request)

    @pytest.fixture
    def head(self, engine_case: tuple[str, EncoderHead]) -> EncoderHead:
        """The head of the checkpoint at hand."""
        return engine_case[1]

    @pytest.fixture
    def load(self, engine_case: tuple[str, EncoderHead], folders: Folders) -> LoadRequest:
        """What the engine at hand is made of."""
        return self._request(engine_case, folders)

    @pytest.fixture
    def engine(self, load: LoadRequest) -> Iterator[EncoderEngine]:
        """A fresh engine, closed in the end."""
        made = self.make_engine(load)
        yield made
        made.close()

    @pytest.fixture
    def want(self, engine: EncoderEngine, head: EncoderHead) -> Want:
        """What the engine is mostly asked for: the logits of its head, else hidden states."""
        return WantLogits() if head != "embedding" and "logits" in engine.reduces else WantHidden()

    def test_rows_come_in_the_order_they_are_asked_in(self, engine: EncoderEngine, want: Want) -> None:
        """One array per row, and each that of its own sequence."""
        order = (4, 0, 6, 2, 5, 3, 1, 4)
        rows = _run(engine, ragged(SEQUENCES, [BatchRow(index, want) for index in order]))
        alone = [_alone(engine, ids, want) for ids in SEQUENCES]
        for place, (index, answer) in enumerate(zip(order, rows, strict=True)):
            found = nearest(answer, alone)
            demand(found == index, f"row {place} is of sequence {index} and has the answer to sequence {found}")

    def test_one_sequence_may_have_several_rows(self, engine: EncoderEngine, load: LoadRequest, want: Want) -> None:
        """One text for several purposes is one sequence."""
        asked = [BatchRow(0, want), BatchRow(0, want), BatchRow(1, want), *self._exits(load, 0, want)]
        rows = _run(engine, ragged(SEQUENCES[:2], asked))
        demand(distance(rows[0], rows[1]) == 0, "two equal rows of one batch have two answers")
        for row, answer in zip(asked, rows, strict=True):
            self._agree(answer, _alone(engine, SEQUENCES[row.sequence], want, row.layer), f"{row}")

    def test_answers_are_float32_of_the_right_shape(self, engine: EncoderEngine, load: LoadRequest) -> None:
        """Hidden states are ``[tokens, hidden]``, whatever else the engine reduces."""
        for ids, answer in zip(SEQUENCES, _every(engine, WantHidden()), strict=True):
            _expect(answer, (len(ids), load.spec.hidden_size or answer.shape[-1]), "hidden states")
            demand(np.isfinite(answer).all(), "a sound checkpoint gives hidden states that are not finite")

    def test_layers_differ_and_the_last_is_the_default(
        self, engine: EncoderEngine, load: LoadRequest, want: Want
    ) -> None:
        """Also where deeper and shallower rows share a batch."""
        native = _alone(engine, SEQUENCES[0], want)
        stated = _alone(engine, SEQUENCES[0], want, load.spec.layers)
        demand(distance(native, stated) <= self.tolerance, "layer=None is not the native depth")
        for row in self._exits(load, 0, want):
            shallow = _alone(engine, SEQUENCES[0], want, row.layer)
            demand(distance(shallow, native) > self.tolerance, f"layer {row.layer} answers as the full depth does")
            mixed = _run(engine, ragged(SEQUENCES[:1], [BatchRow(0, want), row]))
            self._agree(mixed[0], native, "the full depth beside a shallower row")
            self._agree(mixed[1], shallow, f"layer {row.layer} beside a deeper row")

    def test_what_it_reduces_is_what_the_pipeline_would(self, engine: EncoderEngine, load: LoadRequest) -> None:
        """Pooling in the engine is pooling in numpy, for each mode it names and several at once."""
        modes: list[PoolingMode] = [mode for mode in get_args(PoolingMode) if mode in engine.reduces]
        specs = [PoolingSpec(modes=(mode,)) for mode in modes]
        specs += [PoolingSpec(modes=tuple(modes))] if len(modes) > 1 else []
        for layer in (None, *self._shallow(load)):
            hidden = _every(engine, WantHidden(), layer)
            for spec in specs:
                for states, answer in zip(hidden, _every(engine, WantPooled(spec), layer), strict=True):
                    self._agree(answer, pool(states, spec), f"pooling {'+'.join(spec.modes)} after layer {layer}")

    def test_logits_are_those_of_the_head(self, engine: EncoderEngine, load: LoadRequest, head: EncoderHead) -> None:
        """A head of sequences gives ``[labels]``, one of tokens ``[tokens, labels]``; no head, no logits."""
        named = "logits" in engine.reduces
        demand(named is (head != "embedding"), f"a checkpoint for {head} has an engine that reduces {engine.reduces}")
        if head == "embedding":
            return
        labels = len(load.spec.labels or ())
        for layer in (None, *self._shallow(load)):
            for ids, answer in zip(SEQUENCES, _every(engine, WantLogits(), layer), strict=True):
                _expect(answer, (labels,) if head != "token" else (len(ids), labels), "logits")
                demand(np.isfinite(answer).all(), "a sound checkpoint gives logits that are not finite")

    def test_an_answer_does_not_depend_on_the_batch(self, engine: EncoderEngine, want: Want) -> None:
        """Alone, in company, and in company the other way round; which row it is in is another test's matter."""
        together = _every(engine, want)
        backwards = _run(engine, ragged(SEQUENCES[::-1], [BatchRow(index, want) for index in range(len(SEQUENCES))]))
        for ids in SEQUENCES:
            answer = _alone(engine, ids, want)
            for company, rows in (("in company", together), ("in company backwards", backwards)):
                self._agree(rows[nearest(answer, rows)], answer, f"{len(ids)} tokens {company}")

    def test_the_batch_is_left_as_it_was(self, engine: EncoderEngine, want: Want) -> None:
        """Its arrays may be anybody's."""
        batch = ragged(SEQUENCES, [BatchRow(index, want) for index in range(len(SEQUENCES))])
        arrays = {name: getattr(batch, name) for name in ("ids", "type_ids", "offsets", "prompt_tokens")}
        before = {name: array.copy() for name, array in arrays.items()}
        engine.run(batch)
        changed = [name for name, array in arrays.items() if not np.array_equal(array, before[name])]
        demand(not changed, f"running a batch changes its {', '.join(changed)}")

    def test_batches_run_side_by_side(self, engine: EncoderEngine, want: Want) -> None:
        """As many threads as ``concurrency`` says may be in ``run`` at once."""
        demand(engine.concurrency >= 1, f"concurrency is {engine.concurrency}: it is at least 1")
        expected = [_alone(engine, ids, want) for ids in SEQUENCES]

        def ask(number: int) -> FloatArray:
            return _alone(engine, SEQUENCES[number % len(SEQUENCES)], want)

        with ThreadPoolExecutor(engine.concurrency) as threads:
            for number, answer in enumerate(threads.map(ask, range(6 * len(SEQUENCES)))):
                self._agree(answer, expected[number % len(SEQUENCES)], f"with {engine.concurrency} threads running")

    def test_the_number_of_threads_changes_no_answer(self, engine: EncoderEngine, want: Want) -> None:
        """``batch.threads`` is how many may compute, None leaves it to the engine."""
        batch = ragged(SEQUENCES, [BatchRow(index, want) for index in range(len(SEQUENCES))])
        expected = _run(engine, batch)
        for threads in (1, 2):
            for answer, known in zip(_run(engine, replace(batch, threads=threads)), expected, strict=True):
                self._agree(answer, known, f"with threads={threads}")

    def test_the_plan_of_memory_is_positive_and_grows(self, engine: EncoderEngine) -> None:
        """More, longer or fuller sequences never need less."""
        plans = [engine.plan_bytes(BatchShape(*shape)) for shape in _SHAPES]
        demand(plans[0] > 0, f"a batch of {_SHAPES[0]} is planned with {plans[0]} bytes")
        demand(plans == sorted(plans), f"batches of {_SHAPES} are planned with {plans}: a larger one with less")

    def test_broken_weights_are_not_hidden(
        self, engine_case: tuple[str, EncoderHead], folders: Folders, want: Want
    ) -> None:
        """With NaN in its weights an engine fails or answers NaN, for the pipeline to withhold."""
        with contextlib.suppress(VsrError):
            made = self.make_engine(self._request(engine_case, folders, spoil=poison))
            try:
                rows = _every(made, want)
            finally:
                made.close()
            finite = [index for index, answer in enumerate(rows) if np.isfinite(answer).all()]
            demand(not finite, f"weights with NaN give finite answers for sequences {finite}")

    def test_closing_lets_go_of_it(self, load: LoadRequest, want: Want) -> None:
        """Nothing holds an engine after it was closed: no thread, no cache."""
        engine = self.make_engine(load)
        engine.run(ragged(SEQUENCES, [BatchRow(0, want)]))
        engine.close()
        try:
            left = weakref.ref(engine)
        except TypeError:
            pytest.skip(f"a {type(engine).__name__} cannot be watched: it has slots and no __weakref__")
        del engine
        gc.collect()
        demand(left() is None, "a closed engine is still held by something")

    def _request(
        self, case: tuple[str, EncoderHead], folders: Folders, *, spoil: Callable[[Path], Path] | None = None
    ) -> LoadRequest:
        family, head = case

        def write(folder: Path) -> Path:
            source = self.write_checkpoint(folder / "source", family=family, head=head)
            return self.convert(spoil(source) if spoil is not None else source, folder / "converted")

        folder = folders.get((type(self), family, head, spoil), write)
        return load_request(folder, head=head, layers=self.layers, families=self.contributed)

    def _shallow(self, load: LoadRequest) -> list[int]:
        return [layer for layer in self.layers if layer != load.spec.layers]

    def _exits(self, load: LoadRequest, sequence: int, want: Want) -> list[BatchRow]:
        return [BatchRow(sequence, want, layer) for layer in self._shallow(load)]

    def _agree(self, answer: FloatArray, expected: FloatArray, what: str) -> None:
        gap = distance(answer, expected)
        demand(gap <= self.tolerance, f"{what}: off by {gap:g}, the tolerance is {self.tolerance:g}")


def _run(engine: EncoderEngine, batch: RaggedBatch) -> list[FloatArray]:
    rows = [*engine.run(batch).rows]
    demand(len(rows) == len(batch.rows), f"{len(batch.rows)} rows were asked for and {len(rows)} answered")
    return [np.array(row) for row in rows]


def _alone(engine: EncoderEngine, ids: IntArray, want: Want, layer: int | None = None) -> FloatArray:
    return _run(engine, ragged([ids], [BatchRow(0, want, layer)]))[0]


def _every(engine: EncoderEngine, want: Want, layer: int | None = None) -> list[FloatArray]:
    return _run(engine, ragged(SEQUENCES, [BatchRow(index, want, layer) for index in range(len(SEQUENCES))]))


def _expect(answer: FloatArray, shape: tuple[int, ...], what: str) -> None:
    demand(answer.dtype == np.float32, f"{what} come as {answer.dtype}, not as float32")
    demand(answer.shape == shape, f"{what} have the shape {list(answer.shape)}, not {list(shape)}")
