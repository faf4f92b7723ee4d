"""Examining what is installed and configured: plugins, backends and their speed, the configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .finding import Finding

if TYPE_CHECKING:
    from ..config import CheckReport
    from ..contract import RuntimeInfo
    from ..plugins import PluginRecord, PluginReport
    from ..runtime import BackendStatus, RuntimeStatus
    from .measuring import Timing

__all__ = ["engines", "examine_backends", "examine_check", "examine_engines", "examine_plugins", "examine_speed"]

_ALIKE: Final = 1.1
"""Times as fast as the next one that an engine must be to be called faster: a short run tells no less apart."""


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


def engines(state: RuntimeStatus) -> tuple[str, ...]:
    """The backends that compute on this machine, which are those whose probe found a device, by the adapters' names."""
    names = (
        backend.adapter
        for backend in state.backends
        if backend.runtime is not None and backend.runtime.usable and backend.runtime.devices
    )
    return tuple(dict.fromkeys(name for name in names if name is not None))


def examine_engines(names: Sequence[str]) -> Iterator[Finding]:
    """Which engines there are to choose from, where nothing was timed."""
    if len(names) == 1:
        yield Finding(area="engines", mark="ok", title=f"{names[0]} is the only engine here")
    elif names:
        yield Finding(
            area="engines",
            mark="ok",
            title=f"{', '.join(names)}: which is fastest here was not measured",
            way_out="`vsr doctor --measure` times them, which takes a minute or so",
        )


def examine_speed(timings: Sequence[Timing]) -> Iterator[Finding]:
    """Which engine is fastest here and why, as far as they were timed."""
    rates = {each.backend: each.texts_per_second for each in timings if each.texts_per_second is not None}
    ranked = sorted((each for each in timings if each.backend in rates), key=lambda each: -rates[each.backend])
    failed = [each for each in timings if each.backend not in rates]
    if ranked:
        yield Finding(
            area="engines",
            mark="ok",
            title=_fastest([(each.backend, rates[each.backend]) for each in ranked]),
            details=(*map(_timed, ranked), *_why(ranked), _CAVEAT),
        )
    for each in failed:
        yield Finding(
            area="engines",
            mark="warn",
            title=f"{each.backend} was not timed: {each.failure or 'it gave no time'}",
            way_out="mend what the reason names, or time it on a model of your own",
        )


_CAVEAT: Final = (
    "a short run over 24 texts of 6 to 80 words, on random weights in the shape of all-MiniLM-L6-v2 and with default"
    " settings: other models and lengths can come out differently"
)


def _fastest(rates: Sequence[tuple[str, float]]) -> str:
    name, rate = rates[0]
    if len(rates) == 1:
        return f"{name} is the only engine that could be timed: {rate:.0f} texts/s"
    alike = [other for other, its in rates if rate < _ALIKE * its]
    if len(alike) > 1:
        slower = "" if len(alike) == len(rates) else ", ahead of the rest"
        return f"{' and '.join(alike)} are about equally fast here{slower}: some {rate:.0f} texts/s"
    return f"{name} is fastest here: {rate:.0f} texts/s, {rate / rates[1][1]:.1f} times {rates[1][0]}"


def _timed(timing: Timing) -> str:
    ran = " on ".join(part for part in (timing.dtype, timing.device) if part)
    reason = f" ({timing.reason})" if timing.reason else ""
    return f"{timing.backend}: {timing.texts_per_second or 0:.0f} texts/s, {ran or 'it does not say in what'}{reason}"


def _why(ranked: Sequence[Timing]) -> Iterator[str]:
    """What the fastest has that the slower ones have not, as far as is known."""
    first, rate = ranked[0], ranked[0].texts_per_second or 0
    slower = [each for each in ranked[1:] if rate >= _ALIKE * (each.texts_per_second or 0)]
    for preposition, mine, theirs in (
        ("on", first.device, {each.backend: each.device for each in slower}),
        ("in", first.dtype, {each.backend: each.dtype for each in slower}),
    ):
        others = [f"{name} {preposition} {its}" for name, its in theirs.items() if its not in (None, mine)]
        if mine is not None and others:
            yield f"why: {first.backend} computes {preposition} {mine}, {', '.join(others)}"
    alike = [each.backend for each in slower if (each.device, each.dtype) == (first.device, first.dtype)]
    if alike:
        yield f"why: with the same dtype and device as {' and '.join(alike)}, what differs is the engine itself"


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
