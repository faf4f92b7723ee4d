"""The worker's side: holds one subject in a process of its own and answers the benchmark's commands."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .gauges import Stopwatch, peak_bytes, reset_peak, resident_bytes
from .protocol import (
    Ask,
    Done,
    Loaded,
    Prepared,
    Reply,
    RunTime,
    SingleTimes,
    SubjectFacts,
    SweepPoint,
    decode_ask,
    encode,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Subject", "serve", "serve_session"]

WARM_TEXTS = 400
WARM_SINGLES = 10


class Subject(ABC):
    """What is measured: raw texts in, unit vectors out, tokenising included."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embed texts in the way that is measured: float32 ``[texts, dimensions]``, in order."""

    @abstractmethod
    def count_tokens(self, texts: Sequence[str]) -> int:
        """How many tokens the subject reads of the texts, by its own account."""

    @abstractmethod
    def facts(self) -> SubjectFacts:
        """What it really runs on, once it is warm."""

    def tune(self, texts: Sequence[str]) -> tuple[SweepPoint, ...]:
        """Choose what is to be chosen before anything is measured; gives what was tried."""
        return ()

    def close(self) -> None:
        """Free what was loaded."""
        return


def serve(make: Callable[[], Subject]) -> None:
    """Answer the commands for a subject.

    :param make: loads the subject; imports belong in it, since its time is the load time.
    """
    serve_session(_Session(make).answer)


def serve_session(answer: Callable[[Ask], Reply]) -> None:
    """Answer commands from standard input until ``close`` or its end.

    Whatever the measured libraries print to standard output goes to standard error.
    """
    with _private_stdout() as out:
        for line in sys.stdin:
            ask = decode_ask(line)
            reply: Reply | str
            try:
                reply = answer(ask)
            except Exception as error:  # noqa: BLE001 - whatever fails in the measured library is the benchmark's answer
                traceback.print_exc()
                reply = f"{type(error).__name__}: {error}"
            out.write(encode(reply))
            out.flush()
            if ask.command == "close":
                return


class _Session:
    def __init__(self, make: Callable[[], Subject]) -> None:
        self._make = make
        self._loaded: Subject | None = None
        self._texts: list[str] = []
        self._vectors: Any = None

    def answer(self, ask: Ask) -> Reply:
        match ask.command:
            case "load":
                return self._load(Path(ask.path or ""))
            case "prepare":
                return self._prepare()
            case "run":
                return self._run()
            case "single":
                return self._single(ask.count or len(self._texts))
            case "save":
                return self._save(Path(ask.path or ""))
            case "close":
                if self._loaded is not None:
                    self._loaded.close()
                return Done()
            case "forward" | "memory" | "cycle" | "idle":
                raise ValueError(f"a worker that embeds texts has no answer to {ask.command!r}")

    @property
    def _subject(self) -> Subject:
        if self._loaded is None:
            raise RuntimeError("nothing is loaded yet")
        return self._loaded

    def _load(self, path: Path) -> Loaded:
        self._texts = json.loads(path.read_text(encoding="utf-8"))
        start = time.perf_counter()
        self._loaded = self._make()
        return Loaded(seconds=time.perf_counter() - start, resident_bytes=resident_bytes())

    def _prepare(self) -> Prepared:
        start = time.perf_counter()
        subject = self._subject
        subject.embed(self._texts[:WARM_TEXTS])
        sweep = subject.tune(self._texts)
        for text in self._texts[:WARM_SINGLES]:
            subject.embed([text])
        tokens = subject.count_tokens(self._texts)
        return Prepared(seconds=time.perf_counter() - start, tokens=tokens, facts=subject.facts(), sweep=sweep)

    def _run(self) -> RunTime:
        subject = self._subject
        self._vectors = None
        gc.collect()
        reset_peak()
        watch = Stopwatch()
        self._vectors = subject.embed(self._texts)
        seconds, others = watch.read()
        return RunTime(seconds=seconds, texts=len(self._texts), peak_bytes=peak_bytes(), others=others)

    def _single(self, count: int) -> SingleTimes:
        subject = self._subject
        gc.collect()
        times = []
        for text in self._texts[:count]:
            start = time.perf_counter()
            subject.embed([text])
            times.append(time.perf_counter() - start)
        return SingleTimes(seconds=tuple(times))

    def _save(self, path: Path) -> Done:
        import numpy as np

        if self._vectors is None:
            raise RuntimeError("nothing was run yet, so there are no vectors to save")
        np.save(path, np.asarray(self._vectors, np.float32))
        return Done(path=str(path))


@contextlib.contextmanager
def _private_stdout() -> Iterator[IO[str]]:
    """The real standard output, while file descriptor 1 and ``sys.stdout`` lead to standard error."""
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield out
