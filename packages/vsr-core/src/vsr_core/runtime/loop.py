"""A private event loop on a thread of its own, for handles that can only be awaited."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..contract import CallContext
from ..errors import DeadlineExceededError

__all__ = ["LoopThread"]

T = TypeVar("T")


class LoopThread:
    """Starts with the first coroutine; stopping it twice does nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T], call: CallContext | None = None) -> T:
        """Run a coroutine and block until it is done.

        :raises DeadlineExceededError: the deadline passed first; the coroutine is cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result(call.remaining() if call is not None else None)
        except concurrent.futures.TimeoutError:
            if future.done():  # the coroutine's own TimeoutError, not ours
                raise
            future.cancel()
            timeout = call.timeout if call is not None else None
            raise DeadlineExceededError(f"no answer within {timeout:g} s", timeout=timeout) from None

    def stop(self) -> None:
        """End the loop and its thread."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="vsr-loop", daemon=True)
                self._thread.start()
            return self._loop
