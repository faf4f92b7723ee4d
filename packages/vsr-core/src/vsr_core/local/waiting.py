"""The queue of a batcher: bounded in items and tokens, in order of age, exact in its counts."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence

from ..contract import BatchingHints
from .engine import BatchShape
from .selection import choose
from .tickets import Entry, Ticket, WorkItem

__all__ = ["WorkQueue"]

_WINDOW_ITEMS = 512
_WINDOW_BATCHES = 8
_SLACK = 64


class WorkQueue:
    """Waiting entries, oldest first. Knows no threads: its owner holds a lock around every call.

    Entries of a ticket that left stay behind as husks until they are passed over or outnumber the living; the counts
    never include them.

    :param fits: a bound on the shape of a batch, beside the one on padded tokens.
    """

    def __init__(self, hints: BatchingHints, *, fits: Callable[[BatchShape], bool] | None = None) -> None:
        self._hints = hints
        self._fits = fits
        self._window: list[Entry] = []
        self._backlog: deque[Entry] = deque()
        self._deadlines: list[tuple[float, int, Ticket]] = []
        self._numbers = itertools.count()
        self._tickets: dict[Ticket, None] = {}
        self.items = 0
        self.tokens = 0

    def overflow(self, items: int, tokens: int) -> tuple[int, int]:
        """How many items and tokens would be too many if ``items`` of ``tokens`` in all were added; (0, 0) fits."""
        over_items = self.items + items - self._hints.max_queue_items
        over_tokens = self.tokens + tokens - self._hints.max_queue_tokens
        return max(0, over_items), max(0, over_tokens)

    def add(self, ticket: Ticket, items: Sequence[WorkItem], *, tokens: int) -> None:
        """Append every item of a ticket."""
        self._backlog.extend([Entry(ticket, index, item) for index, item in enumerate(items)])
        ticket.queued = len(items)
        ticket.queued_tokens = tokens
        self.items += len(items)
        self.tokens += tokens
        self._tickets[ticket] = None
        if ticket.deadline is not None:
            heapq.heappush(self._deadlines, (ticket.deadline, next(self._numbers), ticket))

    def withdraw(self, ticket: Ticket) -> None:
        """Take whatever a ticket has waiting out of the counts, and out of all later batches."""
        if ticket.queued:
            self.items -= ticket.queued
            self.tokens -= ticket.queued_tokens
            ticket.queued = ticket.queued_tokens = 0
            self._leave(ticket)

    def expire(self, now: float) -> list[Ticket]:
        """Withdraw the tickets whose deadline has passed; gives those that still had something waiting."""
        expired = []
        while self._deadlines and self._deadlines[0][0] <= now:
            ticket = heapq.heappop(self._deadlines)[2]
            if ticket.queued:
                self.withdraw(ticket)
                expired.append(ticket)
        return expired

    def withdraw_all(self) -> list[Ticket]:
        """Empty the queue; gives the tickets that were waiting."""
        tickets = list(self._tickets)
        for ticket in tickets:
            self.withdraw(ticket)
        self._compact()
        return tickets

    def take(self) -> list[Entry]:
        """Remove the next batch: the oldest entry and its neighbours in length; nothing where nothing waits."""
        self._fill_window()
        window = self._window
        if not window:
            return []
        if len(window) == 1:
            chosen, self._window = window, []
        else:
            picked = choose(
                [entry.length for entry in window], max_batch_tokens=self._hints.max_batch_tokens, fits=self._fits
            )
            chosen = [window[place] for place in picked]
            gone = set(picked)
            self._window = [entry for place, entry in enumerate(window) if place not in gone]
        for entry in chosen:
            self._started(entry)
        return chosen

    def _fill_window(self) -> None:
        """Move the oldest entries into the window of which a batch is chosen, and drop the husks in it."""
        window = [entry for entry in self._window if entry.ticket.queued]
        tokens = sum([entry.length for entry in window])
        limit = _WINDOW_BATCHES * self._hints.max_batch_tokens
        backlog = self._backlog
        while backlog and len(window) < _WINDOW_ITEMS and (tokens < limit or not window):
            entry = backlog.popleft()
            if entry.ticket.queued:
                window.append(entry)
                tokens += entry.length
        self._window = window

    def _started(self, entry: Entry) -> None:
        ticket = entry.ticket
        ticket.queued -= 1
        ticket.queued_tokens -= entry.length
        self.items -= 1
        self.tokens -= entry.length
        if not ticket.queued:
            self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        del self._tickets[ticket]
        if len(self._window) + len(self._backlog) > 2 * self.items + _SLACK or (
            len(self._deadlines) > 2 * len(self._tickets) + _SLACK
        ):
            self._compact()

    def _compact(self) -> None:
        self._window = [entry for entry in self._window if entry.ticket.queued]
        self._backlog = deque(entry for entry in self._backlog if entry.ticket.queued)
        self._deadlines = [place for place in self._deadlines if place[2].queued]
        heapq.heapify(self._deadlines)
