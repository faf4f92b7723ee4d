"""The compute threads of the process, shared by every engine in it, and the threads that drive engines."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar, cast

from ..processors import usable_processors

__all__ = ["ComputeThreads", "Worker", "WorkerThreads"]

T = TypeVar("T")


class ComputeThreads:
    """A budget of compute threads that batches of several models borrow from.

    It only advises: a batch always gets at least one thread and never waits, so that many small models still run
    side by side, while one busy model gets all of them.

    :param total: threads in all; None takes the processors this process may use.
    """

    def __init__(self, total: int | None = None) -> None:
        if total is not None and total < 1:
            raise ValueError(f"a budget of {total} compute threads: at least 1 is needed")
        self._total = usable_processors() if total is None else total
        #: The threads that drive the engines which share this budget.
        self.workers = WorkerThreads()
        self._wide = threading.Semaphore(max(1, self._total // 2))
        self._lent = 0
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        """Threads in all."""
        return self._total

    @property
    def lent(self) -> int:
        """Threads in use now; above ``total`` where more batches run than there are threads."""
        return self._lent

    @contextmanager
    def borrow(self, wanted: int) -> Iterator[int]:
        """Lend up to ``wanted`` threads for the length of the block: what is free, but at least one."""
        with self._lock:
            granted = max(1, min(wanted, self._total - self._lent))
            self._lent += granted
        try:
            yield granted
        finally:
            with self._lock:
                self._lent -= granted

    def run(self, job: Callable[[int], T], *, wanted: int) -> T:
        """Run a job with up to ``wanted`` threads; it is told how many.

        A job with more than one runs on a thread kept for such jobs, whatever model it is of: a thread that computes in
        parallel keeps a team of threads, and OpenMP lets teams that outnumber the processors sleep at every barrier, which
        was measured to take half as long again. There are half as many of these as compute threads; where all are busy, a
        job runs on the caller's thread, with one.
        """
        if wanted < 2 or not self._wide.acquire(blocking=False):
            with self.borrow(1) as granted:
                return job(granted)
        try:
            with self.borrow(wanted) as granted:
                return job(granted) if granted == 1 else self.workers.call(lambda: job(granted))
        finally:
            self._wide.release()


class _Outcome(Generic[T]):
    """What became of a job on another thread."""

    def __init__(self) -> None:
        self.value: T | None = None
        self.error: BaseException | None = None
        self.done = threading.Event()


class Worker:
    """A job that has a thread to itself for as long as it runs."""

    def __init__(self, job: Callable[[], None], name: str) -> None:
        self.job = job
        self.name = name
        self.thread: threading.Thread | None = None
        self.done = threading.Event()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return not self.done.is_set()

    def join(self) -> None:
        """Wait for its end, unless this is the job itself."""
        if self.thread is not threading.current_thread():
            self.done.wait()


_Jobs = queue.SimpleQueue[Worker | None]
_Calls = queue.SimpleQueue[Callable[[], None] | None]
_Parked = tuple[_Jobs, threading.Thread]


class WorkerThreads:
    """Threads that take one job after another.

    The allocator gives each thread a part of the heap, and keeps for it what was freed there: were every model to begin
    threads of its own, each load would leave such a part behind.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parked: list[_Parked] = []
        self._idle: list[_Calls] = []
        self._closed = False

    def run(self, job: Callable[[], None], *, name: str) -> Worker:
        """Run a job on a thread that has none, or on a new one, which is called ``name`` meanwhile."""
        worker = Worker(job, name)
        with self._lock:
            parked = self._parked.pop() if self._parked else None
        jobs: _Jobs = queue.SimpleQueue() if parked is None else parked[0]
        jobs.put(worker)
        if parked is None:
            threading.Thread(target=self._work, args=(jobs,), name=name, daemon=True).start()
        return worker

    def call(self, job: Callable[[], T]) -> T:
        """Run a job on a thread that is kept for calls, the one used last where it is free, and wait for what comes of it."""
        outcome = _Outcome[T]()

        def run() -> None:
            try:
                outcome.value = job()
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                outcome.error = error
            finally:
                outcome.done.set()

        with self._lock:
            calls = self._idle.pop() if self._idle else None
        if calls is None:
            calls = queue.SimpleQueue()
            threading.Thread(target=_serve_calls, args=(calls,), name="vsr wide", daemon=True).start()
        calls.put(run)
        outcome.done.wait()
        with self._lock:
            if self._closed:
                calls.put(None)
            else:
                self._idle.append(calls)
        if outcome.error is not None:
            raise outcome.error
        return cast("T", outcome.value)

    def close(self) -> None:
        """End the threads that have no job now, and the others after theirs."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            parked, self._parked = self._parked, []
        for calls in idle:
            calls.put(None)
        for jobs, _ in parked:
            jobs.put(None)
        for _, thread in parked:
            thread.join()

    def _work(self, jobs: _Jobs) -> None:
        thread, going_on = threading.current_thread(), True
        while going_on and (worker := jobs.get()) is not None:
            worker.thread, thread.name = thread, worker.name
            try:
                worker.job()
            finally:
                thread.name = "vsr without a job"
                with self._lock:
                    going_on = not self._closed
                    if going_on:
                        self._parked.append((jobs, thread))
                worker.done.set()


def _serve_calls(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        call()
