"""The run as a picture: time and memory by length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .report import encoders_heading
from .results import ContestantResult, EncodersReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_encoders"]

_COLOURS = {"vsr": "#2f6f9f", "transformers": "#9aa5b1", "vsr-exit": "#e0a458"}


def plot_encoders(report: EncodersReport, path: Path) -> Path:
    """Draw both, on logarithmic scales, into a PNG file.

    :raises ValueError: nothing was timed.
    """
    if not report.summary.workloads:
        raise ValueError("nothing was timed, so there is nothing to draw")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    times, memory = figure.subplots(1, 2)
    for contestant in report.contestants:
        _draw_times(times, report, contestant.name)
        _draw_memory(memory, contestant)
    _finish(times, "milliseconds of one text: median over the rounds, with the range")
    _finish(memory, "megabytes above the loaded model; dashed: planned")
    figure.suptitle("ModernBERT by length\n" + encoders_heading(report), fontsize=8.5, x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def _draw_times(axes: Axes, report: EncodersReport, name: str) -> None:
    points = [
        (each.tokens, each.seconds[name])
        for each in report.summary.workloads
        if each.texts == 1 and name in each.seconds
    ]
    if not points:
        return
    tokens = [length for length, _ in points]
    medians = [values.median * 1000 for _, values in points]
    below = [(values.median - values.low) * 1000 for _, values in points]
    above = [(values.high - values.median) * 1000 for _, values in points]
    axes.errorbar(tokens, medians, yerr=[below, above], marker="o", capsize=3, label=name, color=_COLOURS.get(name))


def _draw_memory(axes: Axes, contestant: ContestantResult) -> None:
    added = [(point.tokens, point.added_bytes / 1e6) for point in contestant.memory if point.added_bytes]
    planned = [
        (point.tokens, point.memory.planned_bytes / 1e6)
        for point in contestant.memory
        if point.memory is not None and point.memory.planned_bytes is not None
    ]
    colour = _COLOURS.get(contestant.name)
    for points, style, marker in ((added, "-", "o"), (planned, "--", "")):
        if points:
            lengths, megabytes = zip(*points, strict=True)
            label = contestant.name if style == "-" else None
            axes.plot(lengths, megabytes, linestyle=style, marker=marker, label=label, color=colour)


def _finish(axes: Axes, label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel("tokens", fontsize=10)
    axes.set_title(label, fontsize=10, loc="left")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
