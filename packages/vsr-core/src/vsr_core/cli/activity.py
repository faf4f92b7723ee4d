"""What is going on, on stderr and only where somebody watches a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["Activity", "watching"]


class Activity:
    """The line about the step in progress, and one per download; without a terminal it says nothing.

    It is what a runtime calls its progress.
    """

    def __init__(self, live: RichProgress | None = None) -> None:
        self._live: Final = live
        self._step: TaskID | None = None
        self._downloads: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def step(self, text: str, *, total: int | None = None) -> None:
        """Begin a step; ``total`` is how many parts it has, where they are counted."""
        if self._live is None:
            return
        if self._step is not None:
            self._live.remove_task(self._step)
        self._step = self._live.add_task(text, total=total)

    def advance(self, parts: int) -> None:
        """Count parts of the step as done."""
        if self._live is not None and self._step is not None:
            self._live.advance(self._step, parts)

    def __call__(self, description: str, completed: int, total: int | None) -> None:
        """Show how a download goes; called from several threads."""
        if self._live is None:
            return
        with self._lock:
            task = self._downloads.get(description)
            if task is None:
                task = self._downloads[description] = self._live.add_task(description, total=total)
        self._live.update(task, completed=completed, total=total)
        if total is not None and completed >= total:
            self._live.update(task, visible=False)


@contextmanager
def watching(text: str) -> Iterator[Activity]:
    """Show what goes on while the block runs, and wipe it away afterwards."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield Activity()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    live = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with live:
        activity = Activity(live)
        activity.step(text)
        yield activity
