"""Examining the machine: interpreter, threads, memory, folders."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from ..processors import usable_processors
from .finding import Finding
from .output import bytes_text
from .places import hub_folder, own_folder

__all__ = ["cpu_quota", "examine_folder", "examine_host", "examine_libraries"]

_GIB: Final = 1024**3
_OLDEST: Final = (3, 11)
_LIBRARIES: Final = ("pydantic", "pluggy", "typer", "rich", "pyyaml")
_LOCAL_LIBRARIES: Final = ("numpy", "tokenizers", "safetensors", "huggingface_hub")
_THREAD_VARIABLES: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def examine_host(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Everything about the machine that needs no plugin."""
    yield _python()
    yield _threads(environ, cpu_quota(Path("/sys/fs/cgroup")))
    memory = _available_memory(Path("/proc/meminfo"))
    if memory is not None:
        yield _memory(memory)
    yield examine_folder("cache", own_folder(environ), way_out="set VSR_CACHE_DIR to a folder that can be written to")
    yield examine_folder("downloads", hub_folder(environ), way_out="set HF_HOME to a folder that can be written to")


def examine_libraries() -> Iterator[Finding]:
    """The libraries of the core and of local models."""
    found = [f"{name} {_version(name) or 'missing'}" for name in _LIBRARIES]
    missing = [name for name in _LIBRARIES if _version(name) is None]
    yield Finding(
        area="libraries",
        mark="fail" if missing else "ok",
        title=f"vsr-core {_version('vsr-core') or 'from a source tree'}",
        details=(", ".join(found),),
        way_out="pip install vsr-core again, in this environment" if missing else None,
    )
    local = {name: _version(name) for name in _LOCAL_LIBRARIES}
    lacking = [name for name, found in local.items() if found is None]
    yield Finding(
        area="libraries",
        mark="warn" if lacking else "ok",
        title=f"local models need {', '.join(lacking)}, which is missing" if lacking else "local models can be read",
        details=(", ".join(f"{name} {found}" for name, found in local.items() if found is not None),),
        way_out='pip install "vsr-core[local]", unless all your models are remote' if lacking else None,
    )


def examine_folder(area: str, folder: Path, *, way_out: str) -> Finding:
    """Whether a folder can be written to, or made where it is to be; nothing is left there."""
    place = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    try:
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free
    except OSError as error:
        return Finding(
            area=area, mark="fail", title=f"{folder} cannot be written to: {error.strerror or error}", way_out=way_out
        )
    if free < _GIB:
        return Finding(area=area, mark="warn", title=f"{folder}: only {bytes_text(free)} are free", way_out=way_out)
    return Finding(area=area, mark="ok", title=f"{folder}: writable, {bytes_text(free)} free")


def cpu_quota(control_group: Path) -> float | None:
    """How many processors the control group grants; None where it sets no bound, or there is none."""
    try:
        quota, period = (control_group / "cpu.max").read_text(encoding="ascii").split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # no such file, or the word "max"
        return None


def _python() -> Finding:
    new_enough = sys.version_info >= _OLDEST
    return Finding(
        area="python",
        mark="ok" if new_enough else "fail",
        title=f"{platform.python_implementation()} {platform.python_version()} on {platform.platform(terse=True)}",
        details=(f"{platform.machine()}, {sys.executable}",),
        way_out=None if new_enough else "use Python 3.11 or newer",
    )


def _threads(environ: Mapping[str, str], quota: float | None) -> Finding:
    usable = usable_processors()
    limits = tuple(f"{name}={environ[name]}" for name in _THREAD_VARIABLES if name in environ)
    if quota is not None and quota < usable:
        whole = max(1, round(quota))
        return Finding(
            area="threads",
            mark="warn",
            title=f"{usable} processors, of which this container may use {quota:g}",
            details=limits,
            way_out=f"set threads: {whole} for each backend in the configuration, or start with taskset",
        )
    return Finding(area="threads", mark="ok", title=f"{usable} processors for computing", details=limits)


def _available_memory(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _memory(available: int) -> Finding:
    scarce = available < _GIB
    return Finding(
        area="memory",
        mark="warn" if scarce else "ok",
        title=f"{bytes_text(available)} available",
        way_out="end something else, or load small models alone" if scarce else None,
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
