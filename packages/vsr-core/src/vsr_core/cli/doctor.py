"""``vsr doctor``: everything that can be wrong on this machine, looked at in turn."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import typer

from ..errors import CheckpointError, ConfigError, VsrError
from ..wire import to_json
from .activity import Activity, watching
from .failures import FAILED
from .finding import Finding
from .options import ConfigOption, JsonOption
from .output import Page, print_json
from .session import config_file, opened

__all__ = ["doctor"]

_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Say what is wrong on this machine, and the way out."""
    from .host import examine_host, examine_libraries

    with watching("looking at this machine") as activity:
        findings = [*examine_host(os.environ), *examine_libraries(), *_examine_installation(config, activity)]
    failed = any(finding.mark == "fail" for finding in findings)
    if as_json:
        print_json("doctor", {"ok": not failed, "findings": to_json(findings)})
    else:
        _show(findings)
    if failed:
        raise typer.Exit(FAILED)


def _examine_installation(explicit: Path | None, activity: Activity) -> Iterator[Finding]:
    """Configuration, plugins and backends; where the configuration is unusable, the rest without it."""
    path: Path | None = None
    try:
        path = config_file(explicit)
        findings = _examine_runtime(path, activity)
    except (ConfigError, CheckpointError) as error:
        yield _unusable(path, error)
        findings = _without_configuration(activity)
    except VsrError as error:
        yield Finding(area="plugins", mark="fail", title=error.message, way_out="`vsr plugins` lists what is installed")
        return
    yield from findings


def _examine_runtime(path: Path | None, activity: Activity) -> list[Finding]:
    from .examinations import examine_backends, examine_check, examine_plugins

    activity.step("probing the backends")
    with opened(path) as runtime:
        runtime.matrix(probe=True)
        state, report = runtime.status(), runtime.check()
        return [
            *examine_check(path, report),
            *examine_plugins(runtime.plugins()),
            *examine_backends(state),
        ]


def _without_configuration(activity: Activity) -> list[Finding]:
    try:
        return [finding for finding in _examine_runtime(None, activity) if finding.area != "configuration"]
    except VsrError as error:
        return [Finding(area="plugins", mark="fail", title=error.message)]


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
