"""The one thread on which models are loaded and closed, one at a time in the pool.

Loading is serial because frameworks keep process-wide state while they load: concurrent loads with differing
dtypes have given wrong weights. Inference goes on beside it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["LoadThread"]

T = TypeVar("T")


class LoadThread:
    """Runs jobs in the order they come, on a daemon thread that starts with the first one."""

    def __init__(self, name: str = "vsr-load") -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Queue a job; its result or its exception, of whatever class, arrives in the future."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001 - foreign code must not end the thread all loads need
                future.set_exception(error)

        with self._lock:
            self._start()
            self._jobs.put(run)
        return future

    def current(self) -> bool:
        """Whether the caller is this thread."""
        return threading.current_thread() is self._thread

    def stop(self, timeout: float | None = None) -> None:
        """End the thread after what is queued."""
        with self._lock:
            thread, self._stopped = self._thread, True
            if thread is not None:
                self._jobs.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _start(self) -> None:
        if self._thread is None or self._stopped:
            self._stopped = False
            self._jobs = queue.SimpleQueue()  # a thread that was told to stop still empties its own
            self._thread = threading.Thread(target=_work, args=(self._jobs,), name=self._name, daemon=True)
            self._thread.start()


def _work(jobs: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
