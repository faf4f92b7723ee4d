"""Loaded models: single-flight loads, leases, swaps and unloads under load, one generation at a time per id."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import dataclasses
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from ..contract import BackendId, CallContext, ModelHandle, ModelInfo
from ..errors import DeadlineExceededError, LoadError, NotReadyError, RuntimeClosedError, VsrError
from ..plugins import BackendInstances
from .adapters import adapters_on, least_used, names_of
from .lease import Lease, Loaded
from .loader import LoadThread
from .loading import load_model
from .slot import Slot
from .sources import ModelSources

__all__ = ["ModelPool"]


class ModelPool:
    """Every model a runtime has loaded.

    :param close_handle: closes a handle; called on the load thread.
    :param hold_off: seconds for which a failed load is not tried again, but answered with its error.
    """

    def __init__(
        self,
        instances: BackendInstances,
        sources: ModelSources,
        *,
        close_handle: Callable[[ModelHandle], None],
        hold_off: float = 5.0,
    ) -> None:
        self._instances = instances
        self._sources = sources
        self._close_handle = close_handle
        self._hold_off = hold_off
        self._thread = LoadThread()
        self._lock = threading.Lock()
        self._slots: dict[BackendId, Slot] = {}
        self._closed = False

    def lease(self, backend_id: BackendId, call: CallContext) -> Lease:
        """The right to use a model, loading it if need be; blocks until it is loaded.

        :raises LoadError: it cannot be loaded; the same error for all who wait, and for ``hold_off`` seconds.
        :raises DeadlineExceededError: the deadline passed first; the load goes on.
        :raises RuntimeClosedError: the pool was closed.
        """
        while True:
            found = self._lease_or_future(backend_id)
            if isinstance(found, Lease):
                return found
            call.check()
            try:
                loaded = found.result(call.remaining())
            except concurrent.futures.TimeoutError:
                raise self._still_loading(backend_id, call) from None
            lease = loaded.lease()
            if lease is not None:
                return lease

    async def lease_async(self, backend_id: BackendId, call: CallContext) -> Lease:
        """As :meth:`lease`, awaiting instead of blocking."""
        while True:
            found = self._lease_or_future(backend_id)
            if isinstance(found, Lease):
                return found
            call.check()
            try:
                loaded = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(found)), call.remaining())
            except TimeoutError:
                raise self._still_loading(backend_id, call) from None
            lease = loaded.lease()
            if lease is not None:
                return lease

    def load(self, backend_id: BackendId, *, timeout: float | None = None) -> ModelInfo:
        """Load a model now, whatever failed before, and say what was loaded."""
        with self._lock:
            self._slot(backend_id).failure = None
        call = CallContext(
            request_id="load", deadline=None if timeout is None else time.monotonic() + timeout, timeout=timeout
        )
        with self.lease(backend_id, call) as lease:
            return lease.info

    def swap(self, backend_id: BackendId, *, timeout: float | None = None) -> ModelInfo:
        """Load a new generation beside the old, put it in its place, and let the old one drain.

        Where the load fails the old generation stays.
        """
        with self._lock:
            self._refuse_when_closed(backend_id)
            slot = self._slot(backend_id)
            future = slot.pending or self._begin(slot, lambda: self._load(slot))
        try:
            return future.result(timeout).info
        except concurrent.futures.TimeoutError:
            raise DeadlineExceededError(
                f"{backend_id} was still loading after {timeout:g} s", timeout=timeout
            ) from None

    def unload(self, backend_id: BackendId, *, timeout: float | None = None) -> bool:
        """Retire what is loaded and wait until its last request is answered and it is closed.

        A request that comes meanwhile is not refused: it loads the model anew.

        :return: whether anything was loaded.
        :raises NotReadyError: it was not drained within ``timeout`` seconds, and closes when it is; or it is the base
            of adapters that are loaded, and stays.
        """
        with self._lock:
            slot = self._slots.get(backend_id)
            loaded = slot.current if slot is not None else None
            if slot is None or loaded is None:
                return False
            adapters = names_of(adapters_on(loaded, self._slots.values()))
            if adapters:
                raise NotReadyError(
                    f"{backend_id} is the base of adapters that are loaded: unload {', '.join(adapters)} first",
                    backend_id=str(backend_id),
                )
            slot.take_out()
        loaded.retire()
        if not self._thread.current() and not loaded.closed.wait(timeout):
            raise NotReadyError(
                f"{backend_id} is still answering {loaded.users} requests; it unloads after the last",
                backend_id=str(backend_id),
            )
        return True

    def loaded(self) -> tuple[BackendId, ...]:
        """The ids that are loaded, sorted."""
        with self._lock:
            return tuple(sorted(key for key, slot in self._slots.items() if slot.current is not None))

    def info(self, backend_id: BackendId) -> ModelInfo:
        """What is known of a model, loaded or not; loads and downloads nothing."""
        with self._lock:
            slot = self._slots.get(backend_id)
            loaded = slot.current if slot is not None else None
            state = slot.state if slot is not None else "not_loaded"
            failure = slot.failure if slot is not None and slot.state == "failed" else None
            adapters = names_of(adapters_on(loaded, self._slots.values())) if loaded is not None else ()
        if loaded is not None:
            return dataclasses.replace(loaded.info, adapters=adapters) if adapters else loaded.info
        known = self._sources.describe(backend_id)
        reason = failure.message if failure is not None else known.state_reason
        return dataclasses.replace(known, state=state, state_reason=reason)

    def close(self, timeout: float | None = 30.0) -> None:
        """Refuse new leases, drain and close every model within ``timeout`` seconds.

        Calling it again waits for what the last call left.
        """
        deadline = None if timeout is None else time.monotonic() + timeout

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - time.monotonic())

        with self._lock:
            self._closed = True
            pending = [slot.pending for slot in self._slots.values() if slot.pending is not None]
        concurrent.futures.wait(pending, left())
        with self._lock:
            retiring = [loaded for slot in self._slots.values() if (loaded := slot.current) is not None]
            for slot in self._slots.values():
                slot.draining += [slot.current] if slot.current is not None else []
                slot.current = None
            draining = [loaded for slot in self._slots.values() for loaded in slot.draining]
        for loaded in retiring:
            loaded.retire()
        for loaded in draining:
            loaded.closed.wait(left())
        self._thread.stop(left())

    def _slot(self, backend_id: BackendId) -> Slot:
        slot = self._slots.get(backend_id)
        if slot is None:
            slot = self._slots[backend_id] = Slot(backend_id=backend_id)
        return slot

    def _refuse_when_closed(self, backend_id: BackendId) -> None:
        if self._closed:
            raise RuntimeClosedError(f"{backend_id} cannot be used: the runtime is closed")

    def _lease_or_future(self, backend_id: BackendId) -> Lease | Future[Loaded]:
        slot = self._slots.get(backend_id)
        loaded = slot.current if slot is not None else None
        lease = loaded.lease() if loaded is not None else None
        if lease is not None:
            return lease
        with self._lock:
            self._refuse_when_closed(backend_id)
            slot = self._slot(backend_id)
            lease = slot.current.lease() if slot.current is not None else None
            if lease is not None:  # published between the look above and the lock
                return lease
            if slot.pending is not None:
                return slot.pending
            if slot.failure is not None and time.monotonic() - slot.failed_at < self._hold_off:
                raise self._again(slot.failure, slot)
            fresh = slot
            return self._begin(fresh, lambda: self._load_once(fresh))

    def _begin(self, slot: Slot, job: Callable[[], Loaded]) -> Future[Loaded]:
        slot.pending = self._thread.submit(job)
        return slot.pending

    def _again(self, failure: VsrError, slot: Slot) -> VsrError:
        """The error of the last load, for one more caller; a copy, since each raise adds to a traceback."""
        error = copy.copy(failure)
        error.retry_after = max(0.0, slot.failed_at + self._hold_off - time.monotonic())
        return error

    def _load_once(self, slot: Slot) -> Loaded:
        """Load a generation unless one was published while this waited for its turn. Runs on the load thread."""
        with self._lock:
            current = slot.current
            if current is not None:
                slot.pending = None
                return current
        return self._load(slot)

    def _load(self, slot: Slot) -> Loaded:
        """Load a generation and publish it. Runs on the load thread."""
        try:
            fresh = self._build(slot.backend_id)
        except VsrError as error:
            self._failed(slot, error)
            raise
        except BaseException as error:
            wrapped = LoadError(
                f"{slot.backend_id} cannot be loaded: {type(error).__name__}: {error}", backend_id=str(slot.backend_id)
            )
            self._failed(slot, wrapped)
            self._instances.record_failure(slot.backend_id.backend, "load", error)
            raise wrapped from error
        with self._lock:
            old, slot.current, slot.pending, slot.failure = slot.current, fresh, None, None
            if old is not None:
                slot.draining.append(old)
            surplus = self._surplus(slot, fresh)
            retiring = [old, *(other.take_out() for other in surplus)]
        for loaded in retiring:
            if loaded is not None:
                loaded.retire()
        return fresh

    def _surplus(self, slot: Slot, fresh: Loaded) -> list[Slot]:
        """The adapters that are too many on the base of the one just loaded; their next request reloads them."""
        if fresh.base is None:
            return []
        limit = self._instances.settings(slot.backend_id.backend).max_adapters
        base = fresh.base.info.backend_id.model
        return least_used(slot, self._slots.values(), base=base, limit=limit)

    def _failed(self, slot: Slot, error: VsrError) -> None:
        with self._lock:
            slot.pending, slot.failure, slot.failed_at = None, error, time.monotonic()

    def _build(self, backend_id: BackendId) -> Loaded:
        base_id = self._sources.base_of(backend_id)
        base = self._lease_on_thread(base_id) if base_id is not None else None
        try:
            started = time.perf_counter()
            handle = load_model(backend_id, self._instances, self._sources, base=base.handle if base else None)
            info = dataclasses.replace(
                self._sources.attribute(handle.info),
                state="ready",
                load_seconds=time.perf_counter() - started,
                loaded_at=time.time(),
            )
        except BaseException:
            if base is not None:
                base.release()
            raise
        return Loaded(handle, info, on_idle=self._retire_on_thread, base=base)

    def _lease_on_thread(self, backend_id: BackendId) -> Lease:
        """The base of an adapter, loaded here and now: this is the load thread, waiting for it would wait for ever."""
        with self._lock:
            slot = self._slot(backend_id)
            current = slot.current
        lease = current.lease() if current is not None else None
        return lease or self._fresh_lease(slot)

    def _fresh_lease(self, slot: Slot) -> Lease:
        lease = self._load(slot).lease()
        if lease is None:
            raise NotReadyError(f"{slot.backend_id} was unloaded while it loaded", backend_id=str(slot.backend_id))
        return lease

    def _retire_on_thread(self, loaded: Loaded) -> None:
        self._thread.submit(lambda: self._close_loaded(loaded))

    def _close_loaded(self, loaded: Loaded) -> None:
        try:
            self._close_handle(loaded.handle)
        finally:
            if loaded.base is not None:
                loaded.base.release()
            with self._lock:
                slot = self._slots.get(loaded.info.backend_id)
                if slot is not None and loaded in slot.draining:
                    slot.draining.remove(loaded)
            loaded.closed.set()

    def _still_loading(self, backend_id: BackendId, call: CallContext) -> DeadlineExceededError:
        return DeadlineExceededError(f"{backend_id} was still loading when the deadline passed", timeout=call.timeout)
