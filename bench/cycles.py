"""The cycle benchmark: what is left in memory after loading and unloading again and again, and what idling costs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .contestant import Progress, Workplace
from .corpus import MODEL, load_corpus, write_texts
from .environments import Interpreters
from .exports import Exports
from .machine import Machine, describe_machine, installed_versions, load_average
from .process import WorkerError
from .protocol import Ask, CycleMemory, IdleUse, Loaded
from .results import SCHEMA
from .stats import quantile
from .variants import Engine, Variant

__all__ = [
    "ENGINES",
    "CycleSettings",
    "CyclesReport",
    "EngineCycles",
    "cycle_variants",
    "cycles_table",
    "growth",
    "idle_share",
    "run_cycles",
    "turn",
]

ENGINES: tuple[Engine, ...] = ("torch", "onnx", "openvino")
MOST_GROWTH = 1.1
"""Memory after any unload over that after the first one: at most this."""
MOST_IDLE = 0.05
"""Of one processor, while a loaded model is asked nothing: less than this."""

_TEXTS = 40
_TIMEOUT = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSettings:
    """What to run.

    :param cycles: loads and unloads of each engine; :param idle_seconds: how long to watch a model idle.
    """

    engines: tuple[Engine, ...] = ENGINES
    cycles: int = 20
    idle_seconds: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCycles:
    """One engine; with a ``failure``, the rest is what had been measured by then."""

    engine: str
    failure: str | None = None
    cycles: tuple[CycleMemory, ...] = ()
    idle: IdleUse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclesReport:
    """All engines, one after the other. ``load_average`` is before and after."""

    schema: int
    command: str
    date: str
    machine: Machine
    load_average: tuple[float | None, float | None]
    versions: dict[str, str]
    model: str
    texts: int
    engines: tuple[EngineCycles, ...]


def run_cycles(settings: CycleSettings, *, progress: Progress) -> CyclesReport:
    """Run the benchmark; an engine that fails is reported with its reason, and the others go on."""
    before = load_average()
    with tempfile.TemporaryDirectory(prefix="vsr-bench-") as folder:
        exports = Exports(Path(folder), progress)
        where = Workplace(Path(folder), _TIMEOUT, Interpreters(progress), progress, exports)
        write_texts(load_corpus(_TEXTS), where.texts)
        variants = cycle_variants(settings.engines)
        results = tuple(
            turn(each, where, cycles=settings.cycles, idle_seconds=settings.idle_seconds) for each in variants
        )
    return CyclesReport(
        schema=SCHEMA,
        command="cycles",
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        load_average=(before, load_average()),
        versions=installed_versions("vsr-core", "torch", "onnxruntime", "onnxruntime-gpu", "openvino"),
        model=MODEL,
        texts=_TEXTS,
        engines=results,
    )


def cycle_variants(engines: Sequence[Engine]) -> tuple[Variant, ...]:
    """What runs for each engine."""
    return tuple(
        Variant(
            name=engine,
            label=engine,
            module="bench.workers.cycling",
            arguments=("--backend", engine),
            engine=engine,
            export=None if engine == "torch" else engine,
        )
        for engine in engines
    )


def turn(variant: Variant, where: Workplace, *, cycles: int, idle_seconds: int) -> EngineCycles:
    """All cycles of one engine, in a process of its own, and then its idling."""
    found: list[CycleMemory] = []
    idle: IdleUse | None = None
    failure: str | None = None
    try:
        with where.start(variant) as worker:
            worker.ask(Ask(command="load", path=str(where.texts)), Loaded, timeout=where.timeout)
            for number in range(cycles):
                where.progress(f"{variant.name}: cycle {number + 1} of {cycles}")
                found.append(worker.ask(Ask(command="cycle"), CycleMemory, timeout=where.timeout))
            where.progress(f"{variant.name}: {idle_seconds} s idle")
            idle = worker.ask(Ask(command="idle", count=idle_seconds), IdleUse, timeout=where.timeout)
    except WorkerError as error:
        failure = str(error)
        where.progress(f"{variant.name} failed: {failure}")
    return EngineCycles(engine=variant.name, failure=failure, cycles=tuple(found), idle=idle)


def growth(cycles: Sequence[CycleMemory]) -> float | None:
    """The most memory after an unload over that after the first; None where the system does not count it."""
    unloaded = [each.unloaded_bytes for each in cycles if each.unloaded_bytes is not None]
    return max(unloaded) / unloaded[0] if unloaded else None


def idle_share(idle: IdleUse | None) -> float | None:
    """What part of one processor an idle model takes."""
    return None if idle is None else idle.processor_seconds / idle.seconds


def cycles_table(report: CyclesReport) -> RenderableType:
    """The run as a table, with the aims beside the numbers."""
    table = Table(title="Loading and unloading", title_justify="left", header_style="bold")
    table.add_column("engine", no_wrap=True)
    titles = (
        "dtype",
        "cycles",
        "load s",
        "MB loaded",
        "MB after first",
        "MB after last",
        "most / first",
        "idle, % of a core",
    )
    for title in titles:
        table.add_column(title, justify="right")
    failures = []
    for each in report.engines:
        if each.failure is not None:
            failures.append(Text(f"{each.engine} failed: {each.failure}", style="red"))
        if each.cycles:
            table.add_row(each.engine, *_row(each))
    return Group(
        table,
        *failures,
        Text(
            f"{report.texts} texts answered in each cycle, {report.model}, {report.machine.processors} processors;"
            f" aims: at most {MOST_GROWTH:.2f} times the memory after the first unload, under {100 * MOST_IDLE:.0f} % of a"
            " core when idle"
        ),
    )


def _row(engine: EngineCycles) -> tuple[str, ...]:
    first, last = engine.cycles[0], engine.cycles[-1]
    grown, idle = growth(engine.cycles), idle_share(engine.idle)
    return (
        last.dtype,
        str(len(engine.cycles)),
        f"{quantile([each.seconds for each in engine.cycles], 0.5):.2f}",
        _megabytes(max((each.loaded_bytes or 0 for each in engine.cycles), default=0) or None),
        _megabytes(first.unloaded_bytes),
        _megabytes(last.unloaded_bytes),
        "-" if grown is None else f"{grown:.2f} {_verdict(grown <= MOST_GROWTH)}",
        "-" if idle is None else f"{100 * idle:.1f} {_verdict(idle < MOST_IDLE)}",
    )


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _megabytes(count: int | None) -> str:
    return "-" if count is None else f"{count / 1e6:,.0f}"
