"""How much memory a batch may take: what the machine, the container and the process have left."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

__all__ = ["SHARE", "WorkingMemory", "free_memory", "return_memory"]

SHARE = 0.8
"""Which part of the free memory batches may take; the rest is for whatever else goes on."""

_FRESH_SECONDS = 0.5
_ALWAYS = 32 << 20
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)
"""Limit and use of this process's container, by version 2 and 1 of the kernel's interface."""


class WorkingMemory:
    """Says what batches may take, from a fixed number of bytes or from what is free at the time of asking.

    What is free is looked up twice a second at most, and never for a batch of less than 32 MiB.

    :param limit: bytes for all batches that run at the same time; None goes by what is free.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._found = 0
        self._asked = -_FRESH_SECONDS

    def bound(self, *, batches: int) -> int:
        """How many bytes one of ``batches`` may take that run at the same time."""
        if self._limit is not None:
            return self._limit // batches
        now = time.monotonic()
        if now - self._asked >= _FRESH_SECONDS:
            self._found, self._asked = free_memory(), now
        return int(self._found * SHARE) // batches

    def allows(self, needed: int, *, batches: int) -> bool:
        """Whether one of ``batches`` may take that many bytes."""
        return (self._limit is None and needed <= _ALWAYS) or needed <= self.bound(batches=batches)


def free_memory() -> int:
    """Bytes this process can still take without swapping, being killed or being refused."""
    available: int = psutil.virtual_memory().available
    return max(0, min((available, *_container(), *_process())))


def return_memory() -> None:
    """Give what was freed back to the system; glibc would keep what lies below what is still in use."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)


def _container() -> Iterator[int]:
    for limit, used in _CGROUPS:
        try:
            yield int(limit.read_text()) - int(used.read_text())
        except (OSError, ValueError):  # there is no such container, or it has no limit ("max")
            continue


def _process() -> Iterator[int]:
    """What ``ulimit`` leaves of the address space and of the data."""
    if sys.platform == "win32":
        return
    import resource

    held = psutil.Process().memory_info()
    for kind, used in ((resource.RLIMIT_AS, held.vms), (resource.RLIMIT_DATA, getattr(held, "data", held.rss))):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield soft - used
