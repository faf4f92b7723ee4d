"""Telling plugins of attempts without letting any of them slow the caller down."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Final

from ..contract import AttemptRecord
from .isolation import explain
from .records import PluginFailure

__all__ = ["Observer"]

_CAPACITY: Final = 1024
_LATE: Final = f"its observer is {_CAPACITY} records behind, so records are lost"


class Observer:
    """One plugin's hook on a daemon thread of its own, started with the first record.

    :param on_failure: is told what the hook raised, and when a record is lost because the hook has fallen 1024
        records behind; called on any thread.
    """

    def __init__(
        self, name: str, observe: Callable[[AttemptRecord], None], on_failure: Callable[[PluginFailure], None]
    ) -> None:
        self._name = name
        self._observe = observe
        self._on_failure = on_failure
        self._records: queue.Queue[AttemptRecord | None] = queue.Queue(_CAPACITY)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def notify(self, record: AttemptRecord) -> None:
        """Hand over a record and return at once."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"vsr observe {self._name}", daemon=True)
                self._thread.start()
        try:
            self._records.put_nowait(record)
        except queue.Full:
            self._on_failure(PluginFailure(stage="run", reason=_LATE, error=queue.Full.__name__))

    def close(self, timeout: float) -> bool:
        """Let the hook work off what is waiting, then end its thread; whether that was done in time.

        :param timeout: seconds.
        """
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return True
        until = time.monotonic() + timeout
        try:
            self._records.put(None, timeout=timeout)
        except queue.Full:
            return False
        thread.join(max(0.0, until - time.monotonic()))
        return not thread.is_alive()

    def _run(self) -> None:
        while (record := self._records.get()) is not None:
            try:
                self._observe(record)
            except BaseException as cause:  # noqa: BLE001 - foreign code; an observer harms nobody
                error, reason = explain(cause)
                self._on_failure(PluginFailure(stage="run", reason=reason, error=error))
