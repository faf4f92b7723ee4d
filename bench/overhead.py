"""The overhead benchmark: what ``Runtime.embed`` of one text costs above the engine that answers it.

One loaded model, four ways to its answer, in turn and with the same text each time:

- ``engine``: the engine runs a batch that is ready; no tokenising
- ``by hand``: tokenise, make the batch, run the engine, scale to unit length, all on the calling thread
- ``batcher``: tokenise, hand the item to the model's queue, wait for the thread that serves it
- ``embed``: ``Runtime.embed``
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table

from .configuration import configuration
from .corpus import MODEL
from .machine import Machine, describe_machine, installed_versions, load_average
from .results import SCHEMA
from .stats import quantile

__all__ = ["OverheadReport", "PathTimes", "overhead_table", "run_overhead"]

THREADS = 1
"""Compute threads of the engine. With more, each path's OpenMP threads would be in the way of the next path's."""

_WARM_CALLS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PathTimes:
    """One way to an answer: wall seconds of each call, in the order of the calls."""

    name: str
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadReport:
    """All paths, called in turn. ``load_average`` is before and after."""

    schema: int
    command: str
    date: str
    machine: Machine
    load_average: tuple[float | None, float | None]
    versions: dict[str, str]
    model: str
    dtype: str
    threads: int
    texts: int
    paths: tuple[PathTimes, ...]


def run_overhead(
    texts: Sequence[str], *, calls: int, precision: str, progress: Callable[[str], None]
) -> OverheadReport:
    """Call every path ``calls`` times, going through the texts again and again.

    :param precision: a precision policy, such as ``auto`` or ``require:fp32``.
    """
    from vsr_core.runtime import Runtime

    from .paths import paths_to

    before = load_average()
    with Runtime.from_config(configuration(precision, threads=THREADS)) as runtime:
        progress("loading the model")
        info = runtime.load()
        paths = paths_to(runtime, texts, threads=THREADS)
        progress(f"{calls} calls of each path")
        times = _alternate(paths, len(texts), calls)
    return OverheadReport(
        schema=SCHEMA,
        command="overhead",
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        load_average=(before, load_average()),
        versions=installed_versions("vsr-core", "vsr-candle-torch", "torch", "tokenizers"),
        model=MODEL,
        dtype=(info.dtype.actual if info.dtype else None) or "unknown",
        threads=THREADS,
        texts=len(texts),
        paths=tuple(PathTimes(name=name, seconds=tuple(values)) for name, values in times.items()),
    )


def overhead_table(report: OverheadReport) -> RenderableType:
    """The run as a table: each path, and by how much it exceeds the ones inside it, call by call."""
    table = Table(title="Runtime.embed of one text", title_justify="left", header_style="bold")
    table.add_column("path", no_wrap=True)
    for title in ("p50 ms", "p99 ms", "p50 above engine, ms", "p50 above by hand, ms"):
        table.add_column(title, justify="right", no_wrap=True)
    seconds = {path.name: path.seconds for path in report.paths}
    for name, values in seconds.items():
        table.add_row(
            name,
            f"{quantile(values, 0.5) * 1000:.3f}",
            f"{quantile(values, 0.99) * 1000:.3f}",
            _above(values, seconds["engine"]) if name != "engine" else "-",
            _above(values, seconds["by hand"]) if name not in ("engine", "by hand") else "-",
        )
    calls = len(next(iter(seconds.values()), ()))
    return Group(
        table,
        f"{calls} calls of each path over {report.texts} texts, {report.dtype}, compute threads: {report.threads};"
        " differences are taken call by call, then the median",
        "engine: no tokenising; by hand: tokenise, run, scale; batcher: tokenise, through the queue and back;"
        " embed: Runtime.embed",
    )


def _above(values: Sequence[float], inner: Sequence[float]) -> str:
    return f"{quantile([value - base for value, base in zip(values, inner, strict=True)], 0.5) * 1000:+.3f}"


def _alternate(paths: Mapping[str, Callable[[int], object]], texts: int, calls: int) -> dict[str, list[float]]:
    """Seconds of each path's calls; another path goes first each time."""
    times: dict[str, list[float]] = {name: [] for name in paths}
    names = list(paths)
    for number in range(-_WARM_CALLS, calls):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            start = time.perf_counter()
            paths[name](number % texts)
            seconds = time.perf_counter() - start
            if number >= 0:
                times[name].append(seconds)
    return times
