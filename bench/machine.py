"""The machine a benchmark ran on, and how busy it was with other things."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["Machine", "describe_machine", "installed_versions", "load_average"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What numbers depend on. ``processors`` are those this process may use; ``memory_bytes`` is all there is."""

    cpu: str
    processors: int
    memory_bytes: int | None
    system: str
    python: str


def describe_machine() -> Machine:
    """This machine."""
    return Machine(
        cpu=_cpu_model(),
        processors=_processors(),
        memory_bytes=_memory_bytes(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
    )


def load_average() -> float | None:
    """Runnable processes over the last minute, on average; None where the system does not say."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def installed_versions(*distributions: str) -> dict[str, str]:
    """The versions of those distributions that are installed here."""
    found = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
