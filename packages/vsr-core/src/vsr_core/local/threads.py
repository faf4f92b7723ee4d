"""The compute threads of the process, shared by every engine in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..processors import usable_processors

__all__ = ["ComputeThreads"]


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
