"""``vsr check`` and ``vsr schema``: is the configuration possible here, and what may be written in one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from ..errors import CheckpointError, ConfigError
from .activity import watching
from .failures import FAILED
from .options import ConfigOption, JsonOption
from .output import Page, print_json
from .session import config_file, opened

__all__ = ["Fault", "check", "examine", "schema"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A problem as it is shown: its place, its key, and what is wrong; ``text`` is all of it on one line."""

    text: str
    where: str = ""
    message: str = ""
    code: str = "config_invalid"
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What a look at a configuration found; ``config`` is the file, or None where there is none."""

    config: Path | None
    problems: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


def check(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check the configuration; nothing is loaded."""
    path = config_file(config)
    with watching("checking the configuration"):
        found = examine(path)
    if as_json:
        print_json("check", _body(found))
    else:
        _show(found)
    if found.problems:
        raise typer.Exit(FAILED)


def schema(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:  # noqa: ARG001 - every command takes it
    """Print the JSON Schema of a configuration."""
    from ..config import json_schema

    if as_json:
        print_json("schema", {"json_schema": json_schema()})
    else:
        typer.echo(json.dumps(json_schema(), indent=2))


def examine(path: Path | None) -> Examination:
    """Everything wrong with a configuration: as a text, or else with what is installed."""
    try:
        with opened(path) as runtime:
            report = runtime.check()
    except CheckpointError:
        raise
    except ConfigError as error:
        return Examination(config=path, problems=_unreadable(error))
    problems = tuple(
        Fault(text=str(item), where=item.where, message=item.message, code=item.code, line=item.line)
        for item in report.problems
    )
    return Examination(config=path, problems=problems, notes=report.notes)


def _unreadable(error: ConfigError) -> tuple[Fault, ...]:
    return tuple(Fault(text=line, message=line) for line in error.problems or (error.message,))


def _body(found: Examination) -> dict[str, Any]:
    return {
        "ok": not found.problems,
        "config": str(found.config) if found.config is not None else None,
        "problems": [
            {"where": item.where, "message": item.message, "code": item.code, "line": item.line}
            for item in found.problems
        ],
        "notes": list(found.notes),
    }


def _show(found: Examination) -> None:
    page = Page()
    name = str(found.config) if found.config is not None else "no configuration file; what plugins bring"
    for section, items in groupby(found.problems, key=_section):
        page.heading(section or name)
        for item in items:
            page.line(f"  {_in_section(item)}")
    _show_notes(page, found.notes)
    if found.problems:
        page.line(f"{_count(len(found.problems))} in {name}", style="red")
    else:
        page.line(f"ok: {name}", style="green")


def _show_notes(page: Page, notes: Sequence[str]) -> None:
    for note in notes:
        page.line(f"note: {note}", style="dim")


def _section(item: Fault) -> str:
    """The top key a problem belongs to; problems come in the order of the file, so each section comes once."""
    return item.where.partition(".")[0].partition("[")[0]


def _in_section(item: Fault) -> str:
    if not item.where:
        return item.message
    line = f"line {item.line}: " if item.line is not None else ""
    return f"{line}{item.where}: {item.message}"


def _count(number: int) -> str:
    return "1 problem" if number == 1 else f"{number} problems"
