"""Where a verification ran: the machine, and the versions on it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from ...contract import RuntimeInfo
from ...plugins import (
    BackendFacts,
    HostFacts,
    PluginHost,
    Receipt,
    ReceiptCell,
    installed_version,
    system_name,
)
from ...processors import usable_processors

__all__ = ["backend_facts", "receipt_of"]


def receipt_of(
    host: PluginHost,
    backends: Mapping[str, BackendFacts],
    *,
    checkpoints: Mapping[str, str],
    cells: Sequence[ReceiptCell],
) -> Receipt:
    """The receipt of what has just been run."""
    names = {"python", "vsr-core", *(record.distribution for record in host.report().plugins if record.distribution)}
    versions = {name: found for name in sorted(names) if (found := installed_version(name)) is not None}
    return Receipt(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        host=HostFacts(
            system=system_name(),
            processors=usable_processors(),
            cpu=_cpu_name(Path("/proc/cpuinfo")),
            memory_bytes=psutil.virtual_memory().total,
        ),
        versions=versions,
        backends=backends,
        checkpoints=dict(sorted(checkpoints.items())),
        cells=tuple(cells),
    )


def backend_facts(host: PluginHost, adapter: str, found: RuntimeInfo) -> BackendFacts:
    """What is to be written down of a backend, from what its probe found."""
    versions = dict(found.versions or {})
    own = host.backends[adapter].source.distribution if adapter in host.backends else ""
    if own and (version := installed_version(own)) is not None:
        versions[own] = version
    return BackendFacts(
        adapter=adapter,
        usable=found.usable,
        reason=found.reason,
        versions=dict(sorted(versions.items())),
        devices=found.devices,
        providers=found.providers,
    )


def _cpu_name(cpuinfo: Path) -> str | None:
    """The processor's name as Linux has it, else as the platform names it."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, None) or platform.processor() or None
