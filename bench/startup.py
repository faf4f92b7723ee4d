"""The start-up benchmark: how long ``vsr plugins`` takes, and how long its imports alone."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .environments import ROOT, worker_environ
from .machine import Machine, describe_machine, installed_versions, load_average
from .process import WorkerError, run_bounded
from .results import SCHEMA
from .stats import paired_ratios, spread

__all__ = ["CommandTimes", "StartupReport", "run_startup", "startup_table"]

_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTimes:
    """One command's wall seconds, a value per run; or why it failed."""

    name: str
    seconds: tuple[float, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupReport:
    """All commands, run in turn. ``load_average`` is before and after."""

    schema: int
    command: str
    date: str
    machine: Machine
    load_average: tuple[float | None, float | None]
    versions: dict[str, str]
    commands: tuple[CommandTimes, ...]


def run_startup(runs: int, *, progress: Callable[[str], None]) -> StartupReport:
    """Run the commands in turn, after one run of each that does not count: it reads the files and writes bytecode."""
    commands = {
        "vsr plugins --json": (str(Path(sys.executable).with_name("vsr")), "plugins", "--json"),
        "import pydantic, pluggy, typer": (sys.executable, "-c", "import pydantic, pluggy, typer"),
        "python -c pass": (sys.executable, "-c", "pass"),
    }
    before = load_average()
    with tempfile.TemporaryDirectory(prefix="vsr-bench-") as bytecode:
        environ = worker_environ() | {"PYTHONPYCACHEPREFIX": bytecode}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        race = _Race(commands, environ)
        progress("one run each to warm up")
        race.warm_up()
        for number in range(runs):
            progress(f"run {number + 1} of {runs}")
            race.run()
    return StartupReport(
        schema=SCHEMA,
        command="startup",
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        load_average=(before, load_average()),
        versions=installed_versions("vsr-core", "pydantic", "pluggy", "typer"),
        commands=race.results(),
    )


def startup_table(report: StartupReport) -> RenderableType:
    """The run as a table; ratios are against the imports alone, run by run."""
    table = Table(title="Start-up", title_justify="left", header_style="bold")
    table.add_column("command", no_wrap=True)
    for title in ("runs", "median ms", "range ms", "x imports"):
        table.add_column(title, justify="right", no_wrap=True)
    imports = next((each for each in report.commands if each.name.startswith("import ")), None)
    failed = []
    for each in report.commands:
        if each.failure is not None or not each.seconds:
            failed.append(Text(f"{each.name} failed: {each.failure or 'it was not run'}", style="red"))
            continue
        values = spread(each.seconds)
        ratio = _ratio(each.seconds, imports.seconds if imports is not None and imports.failure is None else ())
        milliseconds = f"{values.low * 1000:.0f} - {values.high * 1000:.0f}"
        table.add_row(each.name, str(len(each.seconds)), f"{values.median * 1000:.0f}", milliseconds, ratio)
    return Group(table, *failed)


class _Race:
    """The commands, their times so far, and why some of them are out."""

    def __init__(self, commands: Mapping[str, Sequence[str]], environ: Mapping[str, str]) -> None:
        self._commands = commands
        self._environ = environ
        self._times: dict[str, list[float]] = {name: [] for name in commands}
        self._failures: dict[str, str] = {}

    def warm_up(self) -> None:
        """Run each command once, without a word of its time."""
        for name in self._commands:
            self._run(name)

    def run(self) -> None:
        """Run each command once."""
        for name in self._commands:
            if (seconds := self._run(name)) is not None:
                self._times[name].append(seconds)

    def results(self) -> tuple[CommandTimes, ...]:
        """What is known by now."""
        return tuple(
            CommandTimes(name=name, seconds=tuple(values), failure=self._failures.get(name))
            for name, values in self._times.items()
        )

    def _run(self, name: str) -> float | None:
        if name in self._failures:
            return None
        try:
            return _time(self._commands[name], self._environ)
        except WorkerError as error:
            self._failures[name] = str(error)
            return None


def _ratio(values: Sequence[float], baseline: Sequence[float]) -> str:
    return f"{spread(paired_ratios(values, baseline)).median:.2f}" if baseline else "-"


def _time(command: Sequence[str], environ: Mapping[str, str]) -> float:
    start = time.perf_counter()
    done = run_bounded(command, cwd=ROOT, environ=environ, timeout=_TIMEOUT)
    seconds = time.perf_counter() - start
    if done.status != 0:
        last = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise WorkerError(f"status {done.status}: {last}")
    return seconds
