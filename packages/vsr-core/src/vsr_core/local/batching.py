"""The batcher: one queue and the worker threads of one engine, shared by everybody who uses its base."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Sequence
from functools import partial

from ..contract import BatchingHints
from ..errors import InferenceError, NotReadyError, OverloadedError
from .admission import check_memory, check_size
from .engine import BatchShape, EncoderEngine
from .memory import WorkingMemory
from .ragged import assemble, distribute, shape_of
from .reducing import PoolingEngine
from .threads import ComputeThreads, WorkerThreads
from .throughput import BatcherStats, Throughput
from .tickets import Entry, ItemResult, Ticket, WorkItem, answer, describe, fail, late
from .waiting import WorkQueue

__all__ = ["Batcher"]

_logger = logging.getLogger(__name__)

_LEAD = 0
"""The worker that is woken first: its thread and what it left in the caches are the warmest."""


class Batcher:
    """Runs requests on an engine in batches; an idle engine never waits for more to come.

    Pooling that the engine does not do itself is done here, in numpy.

    :param engine: run from ``engine.concurrency`` worker threads; closing it is its owner's part.
    :param name: the backend id that errors and threads carry.
    :param threads: the compute threads the engine may use; None leaves that to the engine.
    :param memory: what a batch may take by the engine's own plan; None is no limit.
    """

    def __init__(
        self,
        engine: EncoderEngine,
        hints: BatchingHints | None = None,
        *,
        name: str,
        threads: ComputeThreads | None = None,
        memory: WorkingMemory | None = None,
    ) -> None:
        self._engine = PoolingEngine(engine)
        self._hints = hints or BatchingHints()
        self._name = name
        self._threads = threads
        self._memory = memory
        self._concurrency = max(1, engine.concurrency)
        self._lock = threading.Lock()
        self._lead = threading.Condition(self._lock)
        self._rest = threading.Condition(self._lock)
        self._lead_free = True
        self._quiet = threading.Condition(self._lock)
        self._queue = WorkQueue(self._hints, fits=None if memory is None else self._fits_memory)
        self._throughput = Throughput(self._concurrency)
        self._running: dict[int, tuple[int, float]] = {}
        self._taken: dict[int, list[Entry]] = {worker: [] for worker in range(self._concurrency)}
        self._refusal: str | None = None
        self._stopped = False
        pool = WorkerThreads() if threads is None else threads.workers
        self._own_threads = pool if threads is None else None
        self._workers = [
            pool.run(partial(self._serve, number), name=f"vsr {name} {number}") for number in range(self._concurrency)
        ]
        # Native code in a daemon thread aborts the process when the interpreter goes away under it.
        atexit.register(self._end_with_process, os.getpid())

    def submit(self, items: Sequence[WorkItem], *, deadline: float | None = None) -> Ticket:
        """Queue the items of one request, all of them or none.

        :param deadline: on the clock of ``time.monotonic``; what still waits by then is dropped and the ticket fails.
        :raises NotReadyError: the batcher is draining or closed.
        :raises OverloadedError: the queue has no room; ``retry_after`` estimates when it will have.
        :raises InputTooLongError: the request would not fit an empty queue, or one item of it the memory limit.
        """
        (ticket,) = self.submit_all([items], deadline=deadline)
        return ticket

    def submit_all(self, requests: Sequence[Sequence[WorkItem]], *, deadline: float | None = None) -> list[Ticket]:
        """Queue several requests at once, all of them or none, so that they can share their batches.

        Raises what :meth:`submit` does, for all of them as for one.
        """
        tickets = [Ticket(len(items), deadline=deadline, withdraw=self._withdraw) for items in requests]
        lengths = [len(item.ids) for items in requests for item in items]
        count, tokens = len(lengths), sum(lengths)
        if lengths:
            check_size(lengths, self._hints, name=self._name)
            check_memory(lengths, self._memory, engine=self._engine, name=self._name)
        with self._lock:
            if self._refusal is not None:
                raise self._not_ready()
            overflow, expired = self._queue.overflow(count, tokens), list[Ticket]()
            if any(overflow):
                expired = self._expire()
                overflow = self._queue.overflow(count, tokens)
            wait = self._throughput.wait_for(*overflow) if any(overflow) else 0.0
            if count and not any(overflow):
                for ticket, items in zip(tickets, requests, strict=True):
                    if items:
                        self._queue.add(ticket, items, tokens=sum([len(item.ids) for item in items]))
                self._wake(count)
        fail(expired, late)
        if any(overflow):
            raise OverloadedError(
                f"{self._name} has no room for {count} sequences of {tokens} tokens: try again in {wait:g} s",
                backend_id=self._name,
                retry_after=wait,
            )
        for ticket, items in zip(tickets, requests, strict=True):
            if not items:
                answer(ticket, [])
        return tickets

    def drain(self, timeout: float | None = None) -> bool:
        """Refuse new work and wait for what was taken; says whether all of it was done in time."""
        with self._lock:
            self._refusal = self._refusal or "is draining"
            return self._quiet.wait_for(self._is_quiet, timeout)

    def _end_with_process(self, owner: int) -> None:
        if os.getpid() == owner:  # a forked child has none of the threads
            self.close()

    def close(self) -> None:
        """Refuse new work, fail what waits, let what runs finish, and end the threads; again, it does nothing."""
        atexit.unregister(self._end_with_process)
        with self._lock:
            self._refusal = "is closed"
            self._stopped = True
            waiting = self._queue.withdraw_all()
            for ticket in waiting:
                ticket.settled = True
            self._lead.notify_all()
            self._rest.notify_all()
            self._quiet.notify_all()
        fail(waiting, self._not_ready)
        for worker in self._workers:
            worker.join()
        if self._own_threads is not None:
            self._own_threads.close()

    def stats(self) -> BatcherStats:
        """How much waits and runs, and what has been done so far."""
        with self._lock:
            running, done = list(self._running.values()), self._throughput
            return BatcherStats(
                queued_items=self._queue.items,
                queued_tokens=self._queue.tokens,
                running_items=sum(items for items, _ in running),
                running_batches=len(running),
                batches=done.batches,
                items=done.items,
                tokens=done.tokens,
                padded_tokens=done.padded_tokens,
                heartbeat_age=max((time.monotonic() - beat for _, beat in running), default=0.0),
                workers=sum(worker.alive for worker in self._workers),
            )

    def _fits_memory(self, shape: BatchShape) -> bool:
        try:
            needed = self._engine.plan_bytes(shape)
            return self._memory is None or self._memory.allows(needed, batches=self._concurrency)
        except Exception:  # noqa: BLE001 - foreign code; a batch that cannot be planned does not grow
            return False

    def _not_ready(self) -> NotReadyError:
        return NotReadyError(f"{self._name} {self._refusal} and takes no more requests", backend_id=self._name)

    def _is_quiet(self) -> bool:
        return not self._queue.items and not self._running

    def _notice_quiet(self) -> None:
        if self._is_quiet():
            self._quiet.notify_all()

    def _expire(self) -> list[Ticket]:
        expired = self._queue.expire(time.monotonic())
        for ticket in expired:
            ticket.settled = True
        return expired

    def _withdraw(self, ticket: Ticket) -> None:
        with self._lock:
            ticket.settled = True
            self._queue.withdraw(ticket)
            self._notice_quiet()

    def _serve(self, worker: int) -> None:
        """The life of a worker thread; should it end before its time, nobody is left waiting for it."""
        try:
            while self._step(worker):
                pass
        except BaseException as error:
            with self._lock:
                self._refusal = f"lost a worker thread to {type(error).__name__}"
                left = dict.fromkeys([*self._queue.withdraw_all(), *(entry.ticket for entry in self._taken[worker])])
                for ticket in left:
                    ticket.settled = True
                self._running.pop(worker, None)
                self._notice_quiet()
            fail(left, self._not_ready)
            _logger.exception("a worker of %s ended before its time", self._name)

    def _step(self, worker: int) -> bool:
        """Report the last batch done, wait for work and run it; false when there is none and never will be."""
        with self._lock:
            self._running.pop(worker, None)
            self._taken[worker] = []
            self._notice_quiet()
            while not ((expired := self._expire()) or (entries := self._queue.take()) or self._stopped):
                self._wait(worker)
            if expired:
                entries = self._queue.take()
            self._taken[worker] = entries
            if entries:
                self._lead_free = self._lead_free and worker != _LEAD
                self._running[worker] = (len(entries), time.monotonic())
            wanted = self._wanted_threads()
        fail(expired, late)
        if entries:
            self._run(worker, entries, wanted)
        return bool(entries or expired)

    def _wake(self, items: int) -> None:
        """Leave one item to the lead if it waits or will look before it does, and wake others for the rest."""
        if self._lead_free:
            self._lead_free = False
            self._lead.notify()
            items -= 1
        if items:
            self._rest.notify(items)

    def _wait(self, worker: int) -> None:
        if worker == _LEAD:
            self._lead_free = True
            self._lead.wait()
        else:
            self._rest.wait()

    def _wanted_threads(self) -> int:
        """All compute threads for a batch that runs alone with none to follow, otherwise an equal share."""
        if self._threads is None:
            return 0
        alone = len(self._running) == 1 and not self._queue.items
        return self._threads.total if alone else max(1, self._threads.total // self._concurrency)

    def _run(self, worker: int, entries: list[Entry], wanted: int) -> None:
        """Run a batch; where it fails, run each ticket's part by itself, so that only the culprit fails."""
        error = self._attempt(worker, entries, wanted)
        if error is None:
            return
        parts: dict[Ticket, list[Entry]] = {}
        for entry in entries:
            parts.setdefault(entry.ticket, []).append(entry)
        for ticket, part in parts.items():
            if ticket.settled:
                continue
            if len(parts) > 1:
                with self._lock:
                    self._running[worker] = (len(part), time.monotonic())
                error = self._attempt(worker, part, wanted)
            if error is not None:
                self._give_up(ticket, error)

    def _attempt(self, worker: int, entries: list[Entry], wanted: int) -> BaseException | None:
        """Run entries and hand out their results; gives what went wrong in the engine."""
        started = time.monotonic()
        try:
            if self._threads is None:
                output = self._engine.run(assemble(entries, threads=None))
            else:
                output = self._threads.run(
                    lambda granted: self._engine.run(assemble(entries, threads=granted)), wanted=wanted
                )
            results = distribute(output, entries)
        except BaseException as error:  # noqa: BLE001 - whatever foreign code raises, the tickets must be answered
            return error
        self._deliver(worker, entries, results, time.monotonic() - started)
        return None

    def _deliver(self, worker: int, entries: list[Entry], results: list[ItemResult], seconds: float) -> None:
        done = []
        with self._lock:
            self._lead_free = self._lead_free or worker == _LEAD  # it looks again before who gets this can ask again
            self._throughput.record(shape_of(entries), seconds)
            for entry, result in zip(entries, results, strict=True):
                ticket = entry.ticket
                if ticket.settled:
                    continue
                ticket.results[entry.index] = result
                ticket.unfinished -= 1
                if not ticket.unfinished:
                    ticket.settled = True
                    done.append(ticket)
        for ticket in done:
            answer(ticket, [result for result in ticket.results if result is not None])

    def _give_up(self, ticket: Ticket, error: BaseException) -> None:
        self._withdraw(ticket)
        failure = InferenceError(f"{self._name} failed while running a batch: {describe(error)}", backend_id=self._name)
        traceback = error.__traceback__
        failure.__cause__ = error.with_traceback(traceback.tb_next if traceback else None)  # our frame holds the batch
        fail([ticket], lambda: failure)
