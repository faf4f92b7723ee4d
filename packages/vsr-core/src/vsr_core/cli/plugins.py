"""``vsr plugins``: what is installed, what it contributes, and why the rest does not."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Final

from ..wire import to_json
from .options import ConfigOption, JsonOption
from .output import Page, print_json
from .session import config_file

if TYPE_CHECKING:
    from pathlib import Path

    from ..plugins import PluginRecord, PluginReport

__all__ = ["plugins"]

_STYLES: Final = {"active": "green", "disabled": "dim", "broken": "red", "incompatible": "red"}


def plugins(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the installed plugins and what they contribute."""
    with contextlib.redirect_stdout(sys.stderr):  # what a plugin prints while it is imported is no part of the answer
        report = _discover(config)
    if as_json:
        print_json("plugins", to_json(report))
    else:
        _show(report)


def _discover(config: Path | None) -> PluginReport:
    """Plugins alone, without a runtime: as quick as this question should be."""
    from ..plugins import PluginHost, PluginSettings

    path = config_file(config)
    if path is None:
        return PluginHost.discover(PluginSettings()).report()
    from ..config import load_config

    return PluginHost.discover(load_config(path).plugins).report()


def _show(report: PluginReport) -> None:
    page = Page()
    if report.plugins:
        page.table(
            ["plugin", "distribution", "version", "status", "contributes"],
            [
                (record.name, record.distribution or "-", record.version or "-", record.status, _contributes(record))
                for record in report.plugins
            ],
            styles=_STYLES,
        )
    else:
        page.line('no plugin is installed; pip install "vsr-core[all]" installs every backend and policy there is')
    for record in report.plugins:
        for line in _remarks(record):
            page.line(line)
    for warning in report.warnings:
        page.line(f"warning: {warning}")
    page.line(f"contract {report.contract}", style="dim")


def _contributes(record: PluginRecord) -> str:
    parts = [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("backend", record.backends),
            ("policy", record.policies),
            ("router", record.routers),
            ("family", record.families),
            ("model", record.catalog),
        )
        if names
    ]
    return "; ".join(parts) or "-"


def _remarks(record: PluginRecord) -> list[str]:
    """Why a plugin is not active, what went wrong later, and which of its names are not used."""
    lines: list[str] = []
    if record.reason is not None:
        stage = f" at {record.stage}" if record.stage else ""
        lines.append(f"{record.name}: {record.status}{stage}: {record.reason}")
    lines += [
        f"{record.name}: failed at {failure.stage}: {failure.reason}"
        for failure in record.failures
        if failure.reason != record.reason
    ]
    lines += [f"{record.name}: {conflict}" for conflict in record.conflicts]
    return lines
