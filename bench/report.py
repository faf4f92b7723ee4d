"""Tables for people."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from .aims import outcomes
from .results import EmbedReport, Summary, VariantResult

__all__ = ["embed_table", "heading", "print_report"]


def print_report(renderable: RenderableType, console: Console) -> None:
    """Print to a terminal, or as wide as needed where the output goes elsewhere."""
    if not console.is_terminal:
        console = Console(file=console.file, width=max(console.width, 120))
    console.print(renderable)


def heading(report: EmbedReport) -> str:
    """What was run, on what, in three lines."""
    machine, (before, after) = report.machine, report.load_average
    rounds = max((len(variant.rounds) for variant in report.variants), default=0)
    return "\n".join(
        (
            f"{report.texts} texts of {report.tokens} tokens (cut at {report.truncated_to}), {rounds} rounds in turn,"
            f" {report.model}",
            f"{machine.cpu}, {machine.processors} processors, {_gigabytes(machine.memory_bytes)},"
            f" {machine.system}, Python {machine.python}",
            f"load average {_plain(before)} before, {_plain(after)} after; {report.date}",
        )
    )


def embed_table(report: EmbedReport) -> RenderableType:
    """The run as two tables, with what failed and what to bear in mind below them."""
    throughput = _table(
        "Throughput", "dtype", "batch", "texts/s", "tokens/s (range)", "x st-fp32", "x raw loop", "others"
    )
    rest = _table(
        "Single texts, memory, exactness", "p50 ms", "p99 ms", "load s", "MB loaded", "MB peak", "cosine", "least"
    )
    summaries = {summary.name: summary for summary in report.summary}
    for variant in report.variants:
        summary = summaries.get(variant.name)
        throughput.add_row(variant.name, *(("failed",) if summary is None else _throughput(variant, summary)))
        if summary is not None:
            rest.add_row(variant.name, *_rest(variant, summary))
    failures = [
        Text(f"{variant.name} failed: {variant.failure}", style="red")
        for variant in report.variants
        if variant.failure is not None
    ]
    notes = [Text(f"note: {note}") for note in report.notes]
    return Group(Text(heading(report)), throughput, *failures, rest, *_aims(report), Text(_legend(report)), *notes)


def _aims(report: EmbedReport) -> tuple[Table, ...]:
    table = _table("Aims", "number", "measured", "at least", "")
    for each in outcomes(report):
        verdict = Text("met", style="green") if each.met else Text("missed", style="yellow")
        digits = 4 if each.aim.measure == "mean cosine" else 2
        table.add_row(
            each.aim.variant,
            each.aim.measure,
            f"{each.measured:.{digits}f}",
            f"{each.aim.least:.{digits - 1}f}",
            verdict,
        )
    return (table,) if table.row_count else ()


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("variant", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _throughput(variant: VariantResult, summary: Summary) -> tuple[str, ...]:
    tokens = summary.tokens_per_second
    return (
        summary.dtype,
        variant.facts.details.get("batch size", "-") if variant.facts is not None else "-",
        f"{summary.texts_per_second.median:.1f}",
        f"{tokens.median:,.0f} ({tokens.low:,.0f} - {tokens.high:,.0f})",
        _plain(summary.to_peer),
        _plain(summary.to_raw),
        _plain(summary.others),
    )


def _rest(variant: VariantResult, summary: Summary) -> tuple[str, ...]:
    cosine = variant.cosine
    return (
        _milliseconds(summary.single_p50),
        _milliseconds(summary.single_p99),
        "-" if variant.load_seconds is None else f"{variant.load_seconds:.1f}",
        _megabytes(variant.resident_bytes),
        _megabytes(summary.peak_bytes),
        "-" if cosine is None else f"{cosine.mean:.6f}",
        "-" if cosine is None else f"{cosine.minimum:.6f}",
    )


def _legend(report: EmbedReport) -> str:
    versions: Mapping[str, str] = {
        name: version
        for variant in report.variants
        if variant.facts is not None
        for name, version in variant.facts.versions.items()
    }
    return (
        "Medians over the rounds; a ratio is the median of the rounds' own ratios, and above 1 is faster. The raw loop is"
        " the one of the same engine and dtype. Others: processors that other processes kept busy meanwhile.\n"
        + ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    )


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f}"


def _megabytes(count: int | None) -> str:
    return "-" if count is None else f"{count / 1e6:,.0f}"


def _gigabytes(count: int | None) -> str:
    return "memory unknown" if count is None else f"{count / 2**30:.1f} GiB"
