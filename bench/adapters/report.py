"""The tables for people, and the picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..stats import quantile, spread
from .materials import CROWD, TASKS, TEXT_TOKENS
from .results import AdaptersReport, Gate, ServingResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["adapters_table", "plot_adapters"]

_COLOURS = ("#9aa5b1", "#e0a458", "#c9ced6", "#b9a7c9", "#2f6f9f", "#4f9fb5", "#7fc7b5")


def adapters_table(report: AdaptersReport) -> RenderableType:
    """Time, memory and bytes of every contestant; the gates; what failed."""
    return Group(
        Text(_heading(report)),
        _times(report.results),
        _sizes(report.results),
        _gates(report.gates),
        Text(_LEGEND),
        *(Text(f"{each.name}: {each.label}") for each in report.results),
        *(Text(f"{each.name} failed: {each.failure}", style="red") for each in report.results if each.failure),
    )


_LEGEND = (
    "Times are of requests through each library's own call; ratios are medians of the rounds' own. Start: from the process to"
    " the first answers, files in the page cache. Memory: after them, above a process without a model."
)


def plot_adapters(report: AdaptersReport, path: Path) -> Path:
    """Draw time, throughput, memory and files beside one another into a PNG file.

    :raises ValueError: nothing was measured.
    """
    results = [each for each in report.results if each.alls and each.crowds]
    if not results:
        raise ValueError("nothing was measured, so there is nothing to draw")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.4), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    (time, crowd), (memory, files) = figure.subplots(2, 2)
    _bars(time, results, [_median(each.alls) * 1000 for each in results], "milliseconds for all six tasks, one text")
    _bars(crowd, results, [_rate(each) for each in results], f"texts a second, all six tasks, {CROWD} at once")
    _bars(memory, results, [(each.resident_bytes or 0) / 1e6 for each in results], "megabytes resident")
    _bars(files, results, [each.bytes / 1e6 for each in results], "megabytes of files")
    figure.suptitle("Six tasks\n" + _heading(report), fontsize=8.5, x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def _bars(axes: Axes, results: Sequence[ServingResult], values: Sequence[float], title: str) -> None:
    names = [each.name for each in results]
    drawn = axes.barh(names, values, color=_COLOURS[: len(names)])
    axes.bar_label(drawn, fmt="%.4g", padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=9)
    axes.margins(x=0.15)


def _heading(report: AdaptersReport) -> str:
    machine, (before, after) = report.machine, report.load_average
    ranks = ", ".join(f"{task.name} {task.rank}" for task in TASKS)
    return "\n".join(
        (
            f"ModernBERT {report.shape}, random weights, {report.precision}; ranks: {ranks}; texts of {TEXT_TOKENS} tokens",
            f"{machine.cpu}, {machine.processors} processors, {machine.system}, Python {machine.python}",
            f"load average {before} before, {after} after; {report.date}",
        )
    )


def _times(results: Sequence[ServingResult]) -> Table:
    columns = ("one task: p50", "p95", "p99", "all six: p50", "p95", "p99", f"{CROWD} at once, texts/s")
    table = _table("Milliseconds", *columns)
    for each in results:
        cells = (*_quantiles(each.ones), *_quantiles(each.alls), f"{_rate(each):.2f}" if each.crowds else "-")
        table.add_row(each.name, *cells)
    return table


def _sizes(results: Sequence[ServingResult]) -> Table:
    table = _table("Memory, files, start", "MB resident", "MB peak", "MB files", "start s", "warm-up s", "difference")
    for each in results:
        peaks = [crowd.peak_bytes for crowd in each.crowds if crowd.peak_bytes]
        table.add_row(
            each.name,
            _megabytes(each.resident_bytes),
            _megabytes(max(peaks, default=None)),
            _megabytes(each.bytes),
            "-" if each.start_seconds is None else f"{each.start_seconds:.1f}",
            "-" if each.warm_seconds is None else f"{each.warm_seconds:.1f}",
            "-" if each.difference is None else f"{each.difference:.1e}",
        )
    return table


def _gates(gates: Sequence[Gate]) -> Table:
    table = Table(title="Held to", title_justify="left")
    for name in ("number", "measured", "bound", ""):
        table.add_column(name, justify="left" if name == "number" else "right")
    for gate in gates:
        said = {None: "not measured", True: "met", False: "MISSED"}[gate.met]
        value = "-" if gate.value is None else f"{gate.value:.3g}"
        table.add_row(gate.name, value, f"{'at most' if gate.at_most else 'at least'} {gate.bound:g}", said)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
    return table


def _quantiles(rounds: Sequence[Sequence[float]]) -> tuple[str, str, str]:
    values = [second for each in rounds for second in each]
    if not values:
        return "-", "-", "-"
    p50, p95, p99 = (f"{quantile(values, fraction) * 1000:.1f}" for fraction in (0.5, 0.95, 0.99))
    return p50, p95, p99


def _median(rounds: Sequence[Sequence[float]]) -> float:
    return spread([second for each in rounds for second in each]).median


def _rate(result: ServingResult) -> float:
    return spread([each.texts / each.seconds for each in result.crowds]).median


def _megabytes(count: int | None) -> str:
    return "-" if count is None else f"{count / 1e6:,.0f}"
