"""Who runs the batches: the engine to its full depth, transformers, and the engine leaving early."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from ..contestant import Workplace
from ..process import Worker, WorkerError
from ..protocol import Ask, Done, ForwardMemory, ForwardTimes, Loaded, Prepared
from ..variants import Variant
from .results import ContestantResult, MemoryPoint, WorkloadTimes
from .shapes import ModernBertShape
from .workloads import Workload

__all__ = ["EXIT", "FULL", "PEER", "Runner", "contestants", "measure_memory"]

T = TypeVar("T")

FULL, PEER, EXIT = "vsr", "transformers", "vsr-exit"
"""The names of the contestants."""


def contestants(shape: ModernBertShape, dtype: str) -> tuple[Variant, ...]:
    """The contestants over one shape, in the order they are reported.

    :param dtype: ``float32`` or ``bfloat16``.
    """
    packed, padded = "bench.workers.packed", "bench.workers.padded"
    depth = ("--depth", str(shape.exit_layer))
    early = f"vsr's engine, leaving after layer {shape.exit_layer} of {shape.layers}"
    return (
        Variant(name=FULL, label="vsr's engine", module=packed, arguments=("--dtype", dtype)),
        Variant(name=PEER, label="transformers' AutoModel", module=padded, arguments=("--dtype", dtype)),
        Variant(name=EXIT, label=early, module=packed, arguments=("--dtype", dtype, *depth)),
    )


class Runner:
    """A contestant with its worker, what it has measured, and why it left, if it did.

    :param checkpoint: the folder of the model.
    """

    def __init__(self, variant: Variant, where: Workplace, checkpoint: Path) -> None:
        self.variant = variant
        self._where = where
        self._checkpoint = checkpoint
        self._worker: Worker | None = None
        self._failure: str | None = None
        self._loaded: Loaded | None = None
        self._prepared: Prepared | None = None
        self._times: dict[str, list[ForwardTimes]] = {}

    def start(self, stack: ExitStack, warm: Path) -> None:
        """Start the worker, load, and run a batch of token ids that does not count."""
        try:
            self._worker = stack.enter_context(self._where.start(self.variant))
        except WorkerError as error:
            self._fail(error)
            return
        self._loaded = self._ask(Ask(command="load", path=str(self._checkpoint)), Loaded)
        self._prepared = self._ask(Ask(command="prepare", path=str(warm)), Prepared)
        if self._loaded is not None and self._prepared is not None:
            details = ", ".join(f"{key} {value}" for key, value in self._prepared.facts.details.items())
            self._where.progress(f"  {self.variant.name}: loaded in {self._loaded.seconds:.1f} s ({details})")

    def warm_up(self, ids: Path) -> None:
        """Run a batch without a word of its time."""
        self._ask(Ask(command="forward", path=str(ids), count=1), ForwardTimes)

    def measure(self, workload: Workload, ids: Path) -> None:
        """One round of a workload."""
        times = self._ask(Ask(command="forward", path=str(ids), count=workload.calls), ForwardTimes)
        if times is not None:
            self._times.setdefault(workload.name, []).append(times)

    def save(self) -> Path | None:
        """The file with the vectors of the last batch; None of a contestant that has left."""
        path = self._where.vectors(self.variant)
        return path if self._ask(Ask(command="save", path=str(path)), Done) is not None else None

    def result(self, memory: tuple[MemoryPoint, ...]) -> ContestantResult:
        """What is known by now."""
        return ContestantResult(
            name=self.variant.name,
            label=self.variant.label,
            failure=self._failure,
            facts=self._prepared.facts if self._prepared else None,
            load_seconds=self._loaded.seconds if self._loaded else None,
            times=tuple(WorkloadTimes(workload=name, rounds=tuple(times)) for name, times in self._times.items()),
            memory=memory,
        )

    def _ask(self, ask: Ask, reply: type[T]) -> T | None:
        """The answer; a failure is the reason to leave, so that the others go on."""
        if self._failure is not None or self._worker is None:
            return None
        try:
            return self._worker.ask(ask, reply, timeout=self._where.timeout)
        except WorkerError as error:
            self._fail(error)
            return None

    def _fail(self, error: WorkerError) -> None:
        self._failure = str(error)
        self._where.progress(f"  {self.variant.name} failed: {error}")
        if self._worker is not None:
            self._worker.close()


def measure_memory(
    variant: Variant, where: Workplace, checkpoint: Path, *, tokens: int, ids: Path, warm: Path
) -> MemoryPoint:
    """What one pass over a text of ``tokens`` tokens adds to a process that has done nothing but load and warm up."""
    try:
        with where.start(variant) as worker:
            worker.ask(Ask(command="load", path=str(checkpoint)), Loaded, timeout=where.timeout)
            worker.ask(Ask(command="prepare", path=str(warm)), Prepared, timeout=where.timeout)
            found = worker.ask(Ask(command="memory", path=str(ids)), ForwardMemory, timeout=where.timeout)
    except WorkerError as error:
        where.progress(f"  {variant.name} failed: {error}")
        return MemoryPoint(tokens=tokens, failure=str(error))
    return MemoryPoint(tokens=tokens, memory=found)
