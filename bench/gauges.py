"""What the system counts: this process's memory, and how busy all processors were."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import time
from pathlib import Path

__all__ = ["Stopwatch", "free_unused", "peak_bytes", "reset_peak", "resident_bytes"]

_STATUS = Path("/proc/self/status")
_STAT = Path("/proc/stat")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def resident_bytes() -> int | None:
    """Memory resident now; None where the system does not say."""
    return _status_bytes("VmRSS")


def free_unused() -> None:
    """Give back what the process holds but does not use, which would hide what is allocated next.

    Without glibc, only garbage goes.
    """
    gc.collect()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def reset_peak() -> bool:
    """Let :func:`peak_bytes` start anew; False where the system does not allow it."""
    try:
        _CLEAR_REFS.write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak_bytes() -> int | None:
    """The most memory resident since :func:`reset_peak`, or in the life of the process where that had no effect."""
    peak = _status_bytes("VmHWM")
    return peak if peak is not None else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Stopwatch:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._busy, self._own = _busy_seconds(), time.process_time()
        self._start = time.perf_counter()

    def read(self) -> tuple[float, float | None]:
        """Wall seconds, and how many processors other processes kept busy meanwhile, where the system says."""
        seconds = time.perf_counter() - self._start
        own, after = time.process_time() - self._own, _busy_seconds()
        if self._busy is None or after is None:
            return seconds, None
        return seconds, max(0.0, after - self._busy - own) / seconds


def _busy_seconds() -> float | None:
    """Processor seconds spent by everybody since the machine started, time stolen from it included."""
    try:
        first = _STAT.read_text(encoding="ascii").partition("\n")[0].split()
    except OSError:
        return None
    user, nice, system, _idle, _waiting, *rest = [int(ticks) for ticks in first[1:9]]
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def _status_bytes(key: str) -> int | None:
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:")), None)
