"""The worker's side: holds one model in a process of its own and runs the batches it is given."""

from __future__ import annotations

import gc
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..gauges import Stopwatch, free_unused, peak_bytes, reset_peak, resident_bytes
from ..protocol import Ask, Done, ForwardMemory, ForwardTimes, Loaded, Prepared, Reply, SubjectFacts
from ..serving import serve_session

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Forward", "ForwardSession", "serve_forward"]


class Forward(ABC):
    """What is measured: token ids in, one pooled vector a text out."""

    @abstractmethod
    def pooled(self, sequences: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        """Run one batch: the mean of each text's token vectors, float32 ``[texts, hidden]``."""

    @abstractmethod
    def facts(self) -> SubjectFacts:
        """What it really runs on."""

    def planned_bytes(self, lengths: Sequence[int]) -> int | None:
        """The working memory it says it needs at most for texts of these lengths; None where it says nothing."""
        return None


def serve_forward(make: Callable[[Path], Forward]) -> None:
    """Answer the commands for a model.

    :param make: loads the model of a folder; imports belong in it, since its time is the load time.
    """
    serve_session(ForwardSession(make).answer)


class ForwardSession:
    """Answers ``load`` with a checkpoint's folder, then any of the others with a file of token ids."""

    def __init__(self, make: Callable[[Path], Forward]) -> None:
        self._make = make
        self._loaded: Forward | None = None
        self._vectors: npt.NDArray[np.float32] | None = None

    def answer(self, ask: Ask) -> Reply:
        """The answer to one command."""
        path = Path(ask.path or "")
        match ask.command:
            case "load":
                return self._load(path)
            case "prepare":
                return self._prepare(_read_ids(path))
            case "forward":
                return self._forward(_read_ids(path), ask.count or 1)
            case "memory":
                return self._memory(_read_ids(path))
            case "save":
                return self._save(path)
            case "close":
                return Done()
            case "run" | "single" | "cycle" | "idle":
                raise ValueError(f"a worker that runs token ids has no answer to {ask.command!r}")

    @property
    def _model(self) -> Forward:
        if self._loaded is None:
            raise RuntimeError("nothing is loaded yet")
        return self._loaded

    def _load(self, folder: Path) -> Loaded:
        start = time.perf_counter()
        self._loaded = self._make(folder)
        return Loaded(seconds=time.perf_counter() - start, resident_bytes=resident_bytes())

    def _prepare(self, sequences: Sequence[Sequence[int]]) -> Prepared:
        start = time.perf_counter()
        self._model.pooled(sequences)
        seconds = time.perf_counter() - start
        return Prepared(seconds=seconds, tokens=sum(map(len, sequences)), facts=self._model.facts())

    def _forward(self, sequences: Sequence[Sequence[int]], count: int) -> ForwardTimes:
        model, seconds = self._model, []
        gc.collect()
        watch = Stopwatch()
        for _ in range(count):
            start = time.perf_counter()
            self._vectors = model.pooled(sequences)
            seconds.append(time.perf_counter() - start)
        return ForwardTimes(seconds=tuple(seconds), others=watch.read()[1])

    def _memory(self, sequences: Sequence[Sequence[int]]) -> ForwardMemory:
        model = self._model
        self._vectors = None
        free_unused()
        before = resident_bytes()
        own = reset_peak()
        model.pooled(sequences)
        return ForwardMemory(
            resident_bytes=before,
            peak_bytes=peak_bytes(),
            peak_is_its_own=own,
            planned_bytes=model.planned_bytes([len(ids) for ids in sequences]),
        )

    def _save(self, path: Path) -> Done:
        import numpy as np

        if self._vectors is None:
            raise RuntimeError("nothing was run yet, so there are no vectors to save")
        np.save(path, self._vectors)
        return Done(path=str(path))


def _read_ids(path: Path) -> list[list[int]]:
    sequences: list[list[int]] = json.loads(path.read_text(encoding="utf-8"))
    return sequences
