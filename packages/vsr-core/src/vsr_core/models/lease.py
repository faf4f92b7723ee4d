"""A loaded model and the right to use it for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ..contract import ModelHandle, ModelInfo

__all__ = ["Lease", "Loaded"]


class Loaded:
    """One generation of a loaded model. It is closed when it is retired and nobody holds a lease any more.

    :param on_idle: called once, with this generation, when it may be closed.
    :param base: for an adapter, the lease that keeps its base loaded for as long as it is itself.

    ``last_used`` is when a lease was given last, on the clock of ``time.monotonic``.
    """

    __slots__ = ("_lock", "_on_idle", "_retired", "_users", "base", "closed", "handle", "info", "last_used")

    def __init__(
        self, handle: ModelHandle, info: ModelInfo, *, on_idle: Callable[[Loaded], None], base: Lease | None = None
    ) -> None:
        self.handle = handle
        self.info = info
        self.base = base
        self.last_used = time.monotonic()
        self.closed = threading.Event()
        self._on_idle = on_idle
        self._lock = threading.Lock()
        self._users = 0
        self._retired = False

    @property
    def users(self) -> int:
        """How many leases are held."""
        return self._users

    def lease(self) -> Lease | None:
        """A lease, or None where this generation is already retired."""
        with self._lock:
            if self._retired:
                return None
            self._users += 1
            self.last_used = time.monotonic()
        return Lease(self)

    def retire(self) -> None:
        """Give no more leases; close once the last one is back."""
        with self._lock:
            if self._retired:
                return
            self._retired = True
            idle = self._users == 0
        if idle:
            self._on_idle(self)

    def give_back(self) -> None:
        """Take a lease back."""
        with self._lock:
            self._users -= 1
            idle = self._retired and self._users == 0
        if idle:
            self._on_idle(self)


class Lease:
    """Keeps a loaded model from being closed until it is released; releasing twice does nothing."""

    __slots__ = ("_loaded", "_released")

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._released = False

    @property
    def handle(self) -> ModelHandle:
        """The handle to infer with."""
        return self._loaded.handle

    @property
    def info(self) -> ModelInfo:
        """What was loaded, with the timing of its load."""
        return self._loaded.info

    def is_on(self, loaded: Loaded) -> bool:
        """Whether this is a lease of that generation."""
        return self._loaded is loaded

    def release(self) -> None:
        """Give the model back."""
        if not self._released:
            self._released = True
            self._loaded.give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
