"""What is queued: items of work, and the ticket a caller waits on until all items of a request are done."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass

from ..contract import FloatArray
from ..errors import DeadlineExceededError, VsrError
from .engine import IntArray, Want

__all__ = ["Entry", "ItemResult", "RowWant", "Ticket", "WorkItem", "answer", "describe", "fail", "late"]

_logger = logging.getLogger(__name__)

ItemResult = tuple[FloatArray, ...]
"""The answers to one item: one float32 array per wanted row, in order."""


@dataclass(frozen=True, slots=True)
class RowWant:
    """One answer wanted of a sequence: as what, after which layer (None: all of them), with which adapter."""

    want: Want
    layer: int | None = None
    adapter: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class WorkItem:
    """One token sequence and the answers wanted of it.

    :param ids: token ids, int32 ``[tokens]``, at least one; ``type_ids`` likewise.
    :param prompt_tokens: how many leading tokens belong to the prompt.
    """

    ids: IntArray
    type_ids: IntArray
    prompt_tokens: int
    rows: tuple[RowWant, ...]


class Ticket(Future[list[ItemResult]]):
    """A request in the batcher: a future of one result per item, in item order.

    A future like any other: ``result(timeout)`` blocks, ``add_done_callback`` calls back on a worker thread, and
    ``asyncio.wrap_future`` awaits it. Unlike other futures it can be cancelled until it is done: queued items leave
    the queue at once, running ones finish and are discarded.

    :param count: how many items the request has.
    :param deadline: on the clock of ``time.monotonic``, or None.
    :param withdraw: takes the ticket's items out of the queue; calling it again does nothing.
    """

    def __init__(self, count: int, *, deadline: float | None, withdraw: Callable[[Ticket], None]) -> None:
        super().__init__()
        self.deadline = deadline
        #: Where finished items put their answers; the rest is None.
        self.results: list[ItemResult | None] = [None] * count
        #: Items not yet finished, items still queued and the tokens of those; the batcher's lock guards all three.
        self.unfinished = count
        self.queued = 0
        self.queued_tokens = 0
        #: Whether the outcome is settled, so that whatever still runs for it is discarded; guarded likewise.
        self.settled = False
        self._withdraw = withdraw
        self._notified = threading.Lock()

    def cancel(self) -> bool:
        """Give the request up; false where it was already done."""
        if not super().cancel():
            return False
        self._withdraw(self)
        if self._notified.acquire(blocking=False):
            self.set_running_or_notify_cancel()  # wakes concurrent.futures.wait; may be called once only
        return True


class Entry:
    """One item of a ticket in the queue."""

    __slots__ = ("index", "item", "length", "ticket")

    def __init__(self, ticket: Ticket, index: int, item: WorkItem) -> None:
        self.ticket = ticket
        self.index = index
        self.item = item
        self.length = len(item.ids)


def answer(ticket: Ticket, outcome: list[ItemResult] | VsrError) -> None:
    """Settle a ticket; a caller who cancelled meanwhile, or whose callback raises, harms nobody else."""
    try:
        if isinstance(outcome, VsrError):
            ticket.set_exception(outcome)
        else:
            ticket.set_result(outcome)
    except InvalidStateError:
        pass  # cancelled a moment ago
    except BaseException:
        _logger.exception("a callback of a finished request failed")


def fail(tickets: Iterable[Ticket], error: Callable[[], VsrError]) -> None:
    """Fail each of the tickets with an error of its own."""
    for ticket in tickets:
        answer(ticket, error())


def late() -> VsrError:
    """The error of a ticket whose deadline passed in the queue."""
    return DeadlineExceededError("the deadline passed while the request waited for the engine")


def describe(error: BaseException) -> str:
    """Type and text of a foreign exception on one line of bounded length."""
    try:
        text = " ".join(str(error).split())[:300]
    except Exception:  # noqa: BLE001 - foreign code, even in its message
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
