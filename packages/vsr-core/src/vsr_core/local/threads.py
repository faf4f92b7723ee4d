"""The compute threads of the process, shared by every engine in it, and the threads that drive engines."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..processors import usable_processors

__all__ = ["ComputeThreads", "Worker", "WorkerThreads"]


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
_Parked = tuple[_Jobs, threading.Thread]


class WorkerThreads:
    """Threads that take one job after another.

    The allocator gives each thread a part of the heap, and keeps for it what was freed there: were every model to begin
    threads of its own, each load would leave such a part behind.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parked: list[_Parked] = []
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

    def close(self) -> None:
        """End the threads that have no job now, and the others after theirs."""
        with self._lock:
            self._closed = True
            parked, self._parked = self._parked, []
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
