"""How much memory a batch may take: what the machine, the container and the process have left."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["SHARE", "WorkingMemory", "free_memory", "return_memory"]

SHARE = 0.8
"""Which part of the free memory batches may take; the rest is for whatever else goes on."""

_FRESH_SECONDS = 0.5
_ALWAYS = 32 << 20


@dataclass(frozen=True, slots=True)
class _Cgroup:
    """Where the kernel tells a container's limit and use, and which line of ``memory.stat`` what it would drop first."""

    folder: Path
    limit: str
    used: str
    idle_files: str


_CGROUPS = (
    _Cgroup(Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"),
    _Cgroup(Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""By version 2 and 1 of the kernel's interface."""


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
    for group in _CGROUPS:
        try:
            limit, used = (int((group.folder / name).read_text()) for name in (group.limit, group.used))
        except (OSError, ValueError):  # there is no such container, or it has no limit ("max")
            continue
        yield limit - used + _idle_files(group)


def _idle_files(group: _Cgroup) -> int:
    """Bytes counted as used that hold files read a while ago, such as weights: the kernel drops them for whoever asks."""
    try:
        lines = (group.folder / "memory.stat").read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.split()[0] == group.idle_files), 0)
    except (OSError, ValueError, IndexError):
        return 0


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
