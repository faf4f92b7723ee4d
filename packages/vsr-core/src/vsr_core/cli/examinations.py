"""Examining what is installed and configured: plugins, backends, the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .finding import Finding

if TYPE_CHECKING:
    from ..config import CheckReport
    from ..contract import RuntimeInfo
    from ..plugins import PluginRecord, PluginReport
    from ..runtime import BackendStatus, RuntimeStatus

__all__ = ["examine_backends", "examine_check", "examine_plugins"]


def examine_check(path: Path | None, report: CheckReport) -> Iterator[Finding]:
    """A summary of ``vsr check``."""
    name = str(path) if path is not None else "no configuration file; what plugins bring is used"
    problems = tuple(str(problem) for problem in report.problems)
    yield Finding(
        area="configuration",
        mark="fail" if problems else "ok",
        title=f"{name}: {len(problems)} problems" if problems else name,
        details=problems + tuple(f"note: {note}" for note in report.notes),
        way_out="`vsr check` shows them by section; `vsr matrix --why` says what is possible" if problems else None,
    )


def examine_plugins(report: PluginReport) -> Iterator[Finding]:
    """Every plugin, and what is odd about the installation."""
    if not report.plugins:
        yield Finding(
            area="plugins",
            mark="warn",
            title="no plugin is installed",
            way_out='pip install "vsr-core[all]", or one of its extras alone',
        )
    for record in report.plugins:
        yield _plugin(record)
    for warning in report.warnings:
        yield Finding(area="plugins", mark="warn", title=warning, way_out="clean up the environment or the settings")


def _plugin(record: PluginRecord) -> Finding:
    name = f"{record.name} ({' '.join(part for part in (record.distribution, record.version) if part) or 'no distribution'})"
    if record.status == "active":
        remarks = (*(f"failed at {item.stage}: {item.reason}" for item in record.failures), *record.conflicts)
        return Finding(
            area="plugins",
            mark="warn" if remarks else "ok",
            title=f"{name}: active",
            details=remarks,
            way_out="`vsr plugins` shows what of it is used" if remarks else None,
        )
    if record.status == "disabled":
        return Finding(area="plugins", mark="ok", title=f"{name}: disabled, {record.reason}")
    stage = f" at {record.stage}" if record.stage else ""
    return Finding(
        area="plugins",
        mark="fail",
        title=f"{name}: {record.status}{stage}: {record.reason}",
        way_out=f"upgrade or uninstall {record.distribution or record.name}, or list it in plugins.disabled",
    )


def examine_backends(state: RuntimeStatus) -> Iterator[Finding]:
    """Every backend, as its probe found it: one that a role needs must be usable, and one at least."""
    needed = {backend_id.backend for role in state.roles for backend_id in role.group}
    for backend in state.backends:
        yield _backend(backend, needed=backend.name in needed)
    if not any(backend.runtime is not None and backend.runtime.usable for backend in state.backends):
        yield Finding(
            area="backends",
            mark="fail",
            title="no backend is usable here",
            way_out='pip install one of the extras of vsr-core, such as "vsr-core[onnx]"; `vsr plugins` says what is there',
        )


def _backend(backend: BackendStatus, *, needed: bool) -> Finding:
    found = backend.runtime
    if backend.error is None and found is not None and found.usable:
        return Finding(
            area="backends",
            mark="ok",
            title=f"{backend.name}: usable{_of(backend)}",
            details=tuple(_facts(found)),
        )
    reason = backend.error or (found.reason if found is not None else None) or "it was not probed"
    role = "; a role needs it" if needed else ""
    return Finding(
        area="backends",
        mark="fail" if needed else "warn",
        title=f"{backend.name}: cannot be used here: {reason}{role}",
        details=tuple(_facts(found)) if found is not None else (),
        way_out="mend what the reason names, or take the backend out of the roles and disable its plugin",
    )


def _of(backend: BackendStatus) -> str:
    """Whose it is, where its name does not say so."""
    return f" ({backend.adapter} of {backend.plugin})" if backend.adapter != backend.name else ""


def _facts(found: RuntimeInfo) -> Iterator[str]:
    if found.versions:
        yield ", ".join(f"{name} {version}" for name, version in found.versions.items())
    for what, values in (("devices", found.devices), ("providers", found.providers), ("native dtypes", found.dtypes)):
        if values:
            yield f"{what}: {', '.join(values)}"
    yield from (f"note: {note}" for note in found.notes)
