"""``vsr doctor``: everything that can be wrong on this machine, looked at in turn."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..errors import CheckpointError, ConfigError, VsrError
from ..wire import to_json
from .activity import Activity, watching
from .failures import FAILED
from .finding import Finding
from .options import ConfigOption, JsonOption
from .output import Page, print_json
from .session import config_file, opened

if TYPE_CHECKING:
    from ..runtime import RuntimeStatus

__all__ = ["doctor"]

_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    *,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time the engines on a small model, to say which is fastest here.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong on this machine, and the way out."""
    from .host import examine_host, examine_libraries

    with watching("looking at this machine") as activity:
        findings = [*examine_host(os.environ), *examine_libraries()]
        installed, state = _examine_installation(config, activity)
        findings += installed
        if state is not None:
            findings += _examine_speed(state, activity) if measure else _examine_engines(state)
    failed = any(finding.mark == "fail" for finding in findings)
    if as_json:
        print_json("doctor", {"ok": not failed, "findings": to_json(findings)})
    else:
        _show(findings)
    if failed:
        raise typer.Exit(FAILED)


def _examine_installation(explicit: Path | None, activity: Activity) -> tuple[list[Finding], RuntimeStatus | None]:
    """Configuration, plugins and backends; where the configuration is unusable, the rest without it.

    :returns: the findings, and the state of the backends where it could be had.
    """
    path: Path | None = None
    try:
        path = config_file(explicit)
        return _examine_runtime(path, activity)
    except (ConfigError, CheckpointError) as error:
        findings, state = _without_configuration(activity)
        return [_unusable(path, error), *findings], state
    except VsrError as error:
        way_out = "`vsr plugins` lists what is installed"
        return [Finding(area="plugins", mark="fail", title=error.message, way_out=way_out)], None


def _examine_runtime(path: Path | None, activity: Activity) -> tuple[list[Finding], RuntimeStatus]:
    from .examinations import examine_backends, examine_check, examine_plugins

    activity.step("probing the backends")
    with opened(path) as runtime:
        runtime.matrix(probe=True)
        state, report = runtime.status(), runtime.check()
        findings = [
            *examine_check(path, report),
            *examine_plugins(runtime.plugins()),
            *examine_backends(state),
        ]
        return findings, state


def _without_configuration(activity: Activity) -> tuple[list[Finding], RuntimeStatus | None]:
    try:
        findings, state = _examine_runtime(None, activity)
    except VsrError as error:
        return [Finding(area="plugins", mark="fail", title=error.message)], None
    return [finding for finding in findings if finding.area != "configuration"], state


def _examine_engines(state: RuntimeStatus) -> Iterator[Finding]:
    from .examinations import engines, examine_engines

    return examine_engines(engines(state))


def _examine_speed(state: RuntimeStatus, activity: Activity) -> Iterator[Finding]:
    from .examinations import engines, examine_speed
    from .measuring import measure

    return examine_speed(measure(engines(state), activity))


def _unusable(path: Path | None, error: ConfigError) -> Finding:
    return Finding(
        area="configuration",
        mark="fail",
        title=error.message.splitlines()[0],
        details=error.problems,
        way_out=f"correct {path}; `vsr schema` prints what may be written" if path else "name a file that exists",
    )


def _show(findings: Sequence[Finding]) -> None:
    page = Page()
    for area, group in groupby(findings, key=lambda finding: finding.area):
        page.heading(area)
        for finding in group:
            page.line(f"  {finding.mark:<4}  {finding.title}", style=_STYLES[finding.mark])
            for detail in finding.details:
                page.line(f"        {detail}", style="dim")
            if finding.way_out is not None:
                page.line(f"        way out: {finding.way_out}")
    counts = {mark: sum(finding.mark == mark for finding in findings) for mark in _STYLES}
    page.line(", ".join(f"{count} {mark}" for mark, count in counts.items()), style="bold")
