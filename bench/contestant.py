"""One variant in the race, and where all of them find and leave things."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .environments import ROOT, Interpreters, worker_environ
from .exports import Exports
from .process import Worker, WorkerError
from .protocol import Ask, Done, Loaded, Prepared, RunTime, SingleTimes
from .results import CosineRange, VariantResult
from .summary import cosine_range
from .variants import Variant

__all__ = ["Contestant", "Progress", "Workplace", "rotated"]

T = TypeVar("T")
Progress = Callable[[str], None]

SINGLE_TEXTS = 80
"""How many of the texts are asked one at a time in each round."""


def rotated(contestants: Sequence[T], number: int) -> Sequence[T]:
    """A different one first each round, so that nobody always follows the same neighbour's heat."""
    start = number % max(1, len(contestants))
    return [*contestants[start:], *contestants[:start]]


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where workers find and leave things, and how they are started.

    :param timeout: seconds any single step may take.
    :param exports: where a variant finds the model in a form of its own; None where none needs one.
    """

    folder: Path
    timeout: float
    interpreters: Interpreters
    progress: Progress
    exports: Exports | None = None

    @property
    def texts(self) -> Path:
        """The file with the texts."""
        return self.folder / "texts.json"

    def vectors(self, variant: Variant) -> Path:
        """The file for a variant's vectors."""
        return self.folder / f"{variant.name}.npy"

    def start(self, variant: Variant) -> Worker:
        """A worker of its own for a variant.

        :raises WorkerError: its environment, its export or its process is not to be had.
        """
        python = self.interpreters.find(variant.environment)
        command = [str(python), "-m", variant.module, *variant.arguments]
        if variant.export is not None:
            if self.exports is None:
                raise WorkerError(f"{variant.name!r} needs an export, and this benchmark makes none")
            command += ["--model", str(self.exports.find(variant.export))]
        return Worker(command, cwd=ROOT, environ=worker_environ(), log=self.folder / f"{variant.name}.log")


class Contestant:
    """A variant with its worker, what it has measured, and why it left, if it did."""

    def __init__(self, variant: Variant, where: Workplace, stack: ExitStack) -> None:
        self._variant = variant
        self._where = where
        self._stack = stack
        self._worker: Worker | None = None
        self._failure: str | None = None
        self._loaded: Loaded | None = None
        self._prepared: Prepared | None = None
        self._rounds: list[RunTime] = []
        self._singles: list[tuple[float, ...]] = []

    def start(self) -> None:
        """Start the worker, load, warm up and tune."""
        with self._own_failures():
            self._worker = self._stack.enter_context(self._where.start(self._variant))
            self._loaded = self._ask(Ask(command="load", path=str(self._where.texts)), Loaded)
            self._prepared = self._ask(Ask(command="prepare"), Prepared)
            details = ", ".join(f"{key} {value}" for key, value in self._prepared.facts.details.items())
            self._tell(
                f"loaded in {self._loaded.seconds:.1f} s, warm after {self._prepared.seconds:.1f} s"
                + (f" ({details})" if details else "")
            )

    def measure(self) -> None:
        """One round: all texts at once, then some of them one at a time."""
        if self._failure is not None:
            return
        with self._own_failures():
            run = self._ask(Ask(command="run"), RunTime)
            singles = self._ask(Ask(command="single", count=SINGLE_TEXTS), SingleTimes)
            self._rounds.append(run)
            self._singles.append(singles.seconds)
            self._tell(f"{run.texts / run.seconds:.1f} texts/s")

    def result(self, reference: Path | None) -> VariantResult:
        """Save the vectors for comparison, end the worker, and put together what is known."""
        cosine: CosineRange | None = None
        if self._failure is None:
            with self._own_failures():
                path = self._where.vectors(self._variant)
                self._ask(Ask(command="save", path=str(path)), Done)
                if reference is not None:
                    cosine = cosine_range(path, reference)
        if self._worker is not None:
            self._worker.close()
        return VariantResult(
            name=self._variant.name,
            label=self._variant.label,
            engine=self._variant.engine,
            failure=self._failure,
            facts=self._prepared.facts if self._prepared else None,
            tokens=self._prepared.tokens if self._prepared else None,
            load_seconds=self._loaded.seconds if self._loaded else None,
            resident_bytes=self._loaded.resident_bytes if self._loaded else None,
            sweep=self._prepared.sweep if self._prepared else (),
            rounds=tuple(self._rounds),
            singles=tuple(self._singles),
            cosine=cosine,
        )

    @contextmanager
    def _own_failures(self) -> Iterator[None]:
        """Take a failure as the reason to leave the race, so that the others go on."""
        try:
            yield
        except (WorkerError, ValueError) as error:
            self._failure = str(error)
            self._tell(f"failed: {error}")
            if self._worker is not None:
                self._worker.close()

    def _ask(self, ask: Ask, reply: type[T]) -> T:
        if self._worker is None:
            raise WorkerError("the worker was not started")
        return self._worker.ask(ask, reply, timeout=self._where.timeout)

    def _tell(self, text: str) -> None:
        self._where.progress(f"  {self._variant.name}: {text}")
