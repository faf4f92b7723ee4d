"""The tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..stats import Spread
from .contestants import EXIT, FULL, PEER
from .results import ContestantResult, EncodersReport, MemoryPoint, WorkloadSummary, problems
from .summary import EXIT_AIM, GROWTH_AIM, peer_aim

__all__ = ["encoders_heading", "encoders_table"]


def encoders_heading(report: EncodersReport) -> str:
    """What was run, on what, in three lines."""
    shape, machine, (before, after) = report.shape, report.machine, report.load_average
    memory = "memory unknown" if machine.memory_bytes is None else f"{machine.memory_bytes / 2**30:.1f} GiB"
    return "\n".join(
        (
            f"ModernBERT {shape.name}, random weights, {report.dtype}: {shape.layers} layers of {shape.hidden},"
            f" window {shape.window}; the exit is layer {shape.exit_layer}",
            f"{machine.cpu}, {machine.processors} processors, {memory}, {machine.system}, Python {machine.python}",
            f"load average {_plain(before)} before, {_plain(after)} after; {report.date}",
        )
    )


def encoders_table(report: EncodersReport) -> RenderableType:
    """Time, memory and the batch of mixed lengths; then what failed, and what to bear in mind."""
    single = [each for each in report.summary.workloads if each.texts == 1]
    mixed = [each for each in report.summary.workloads if each.texts > 1]
    return Group(
        Text(encoders_heading(report)),
        _times(single),
        _ratios(single),
        *(_mixed(each) for each in mixed),
        _memory(report),
        Text(_growth(report)),
        Text(_legend(report)),
        *(Text(f"note: {note}") for note in report.notes),
        *(Text(problem, style="red") for problem in problems(report)),
    )


def _times(workloads: Sequence[WorkloadSummary]) -> Table:
    names = (FULL, PEER, EXIT)
    table = _table("One text a batch: milliseconds, median (range)", *names, "others")
    for each in workloads:
        seconds = (_milliseconds(each.seconds.get(name)) for name in names)
        table.add_row(f"{each.tokens:,}", *seconds, _plain(each.others))
    return table


def _ratios(workloads: Sequence[WorkloadSummary]) -> Table:
    columns = (f"{FULL} / {PEER}", "aim", f"{EXIT} / {FULL}", "aim", "difference")
    table = _table("One text a batch: ratios, median (range)", *columns)
    for each in workloads:
        table.add_row(
            f"{each.tokens:,}",
            *_aimed(each.to_peer, peer_aim(each.tokens)),
            *_aimed(each.exit_to_full, EXIT_AIM),
            f"{each.agreement.difference:.1e}" if each.agreement is not None else "-",
        )
    return table


def _mixed(each: WorkloadSummary) -> Text:
    rates = (
        f"{name} {each.texts / seconds.median:.2f}" for name, seconds in each.seconds.items() if name in (FULL, PEER)
    )
    said = f"{each.texts} texts of mixed lengths in one batch, {each.tokens:,} tokens: texts/s {', '.join(rates)}"
    if each.to_peer is not None:
        gain = each.to_peer
        said += (
            f"; vsr packed over transformers padded {1 / gain.median:.2f} ({1 / gain.high:.2f} - {1 / gain.low:.2f})"
        )
    if each.agreement is not None:
        said += f"; difference {each.agreement.difference:.1e}"
    return Text(f"{said}; others {_plain(each.others)}")


def _memory(report: EncodersReport) -> Table:
    names = [each.name for each in report.contestants]
    planned = [each.name for each in report.contestants if _planned(each)]
    title = "One text a batch: megabytes above what is resident once loaded"
    table = _table(title, *names, *(f"{name} planned" for name in planned))
    points = {each.name: {point.tokens: point for point in each.memory} for each in report.contestants}
    for tokens in sorted({tokens for found in points.values() for tokens in found}):
        row = {name: found.get(tokens) for name, found in points.items()}
        table.add_row(
            f"{tokens:,}", *(_added(row[name]) for name in names), *(_planned_megabytes(row[name]) for name in planned)
        )
    return table


def _growth(report: EncodersReport) -> str:
    if not report.summary.growth:
        return "Growth of memory: not measured, since it takes the lengths 2048 and 8192."
    low, high = GROWTH_AIM
    found = ", ".join(
        f"{name} {growth:.2f}" + (" " + _verdict(met=low <= growth <= high) if name == FULL else "")
        for name, growth in report.summary.growth.items()
    )
    return f"Growth of memory, 4k to 8k over 2k to 4k (linear is 2, quadratic 4; vsr aims at {low} to {high}): {found}"


def _legend(report: EncodersReport) -> str:
    lines = [
        "A ratio is the median of the rounds' own ratios, and below 1 is faster. Difference: the largest between the"
        " full-depth vectors of vsr and transformers. Others: processors that other processes kept busy meanwhile."
    ]
    for each in report.contestants:
        if each.facts is not None:
            said = {**each.facts.details, "threads": str(each.facts.threads), **each.facts.versions}
            lines.append(f"{each.name}: {each.label}; {', '.join(f'{key} {value}' for key, value in said.items())}")
    return "\n".join(lines)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("tokens", justify="right", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _aimed(ratio: Spread | None, aim: float | None) -> tuple[str, str]:
    if ratio is None:
        return "-", "-"
    said = f"{ratio.median:.2f} ({ratio.low:.2f} - {ratio.high:.2f})"
    return said, "-" if aim is None else f"{aim:.2f} {_verdict(met=ratio.median <= aim)}"


def _verdict(*, met: bool) -> str:
    return "met" if met else "missed"


def _milliseconds(seconds: Spread | None) -> str:
    if seconds is None:
        return "-"
    digits = 1 if seconds.median < 1 else 0
    median, low, high = (f"{value * 1000:,.{digits}f}" for value in (seconds.median, seconds.low, seconds.high))
    return f"{median} ({low} - {high})"


def _planned(contestant: ContestantResult) -> bool:
    return any(point.memory is not None and point.memory.planned_bytes is not None for point in contestant.memory)


def _planned_megabytes(point: MemoryPoint | None) -> str:
    return "-" if point is None or point.memory is None else _megabytes(point.memory.planned_bytes)


def _added(point: MemoryPoint | None) -> str:
    return "-" if point is None else _megabytes(point.added_bytes)


def _megabytes(count: int | None) -> str:
    return "-" if count is None else f"{count / 1e6:,.1f}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
