"""The run as a picture: throughput with its spread, and beside each bar how exact the vectors are."""

from __future__ import annotations

from pathlib import Path

from .report import heading
from .results import EmbedReport, Summary, VariantResult

__all__ = ["plot_embed"]

_COLOURS = {"st": "#9aa5b1", "raw": "#e0a458", "vsr": "#2f6f9f"}


def plot_embed(report: EmbedReport, path: Path) -> Path:
    """Draw the variants that ran, the first on top, into a PNG file.

    :raises ValueError: none ran.
    """
    if not report.summary:
        raise ValueError("no variant ran, so there is nothing to draw")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.9 + 0.62 * len(report.summary)), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    variants = {variant.name: variant for variant in report.variants}
    top = max(summary.tokens_per_second.high for summary in report.summary)
    for row, summary in enumerate(report.summary):
        values = summary.tokens_per_second
        errors = [[values.median - values.low], [values.high - values.median]]
        colour = _COLOURS.get(summary.name.partition("-")[0], "#777777")
        axes.barh(row, values.median, xerr=errors, color=colour, height=0.62, capsize=4, ecolor="#333333")
        axes.text(values.high + 0.015 * top, row, _caption(summary, variants[summary.name]), va="center", fontsize=9)
    axes.set_yticks(range(len(report.summary)), [_name(summary) for summary in report.summary], fontsize=10)
    axes.invert_yaxis()
    axes.set_xlim(0, top * 1.5)
    axes.set_xlabel("tokens per second: median over the rounds, with the range", fontsize=10)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    failed = ", ".join(variant.name for variant in report.variants if variant.failure is not None)
    title = heading(report) + (f"\nfailed: {failed}" if failed else "")
    axes.set_title(title, fontsize=8.5, loc="left", color="#444444")
    figure.suptitle("Embedding throughput", fontsize=13, x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def _name(summary: Summary) -> str:
    return f"{summary.name}\n{summary.dtype}"


def _caption(summary: Summary, variant: VariantResult) -> str:
    parts = [f"{summary.tokens_per_second.median:,.0f}"]
    if summary.to_peer is not None:
        parts.append(f"{summary.to_peer:.2f} x st-fp32")
    if variant.cosine is not None:
        parts.append(f"cos {variant.cosine.mean:.5f}, min {variant.cosine.minimum:.5f}")
    return "   ".join(parts)
