"""How many processors this process may use."""

from __future__ import annotations

import os

__all__ = ["usable_processors"]


def usable_processors() -> int:
    """The processors the scheduler may put this process on; all of the machine's where it cannot say."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
