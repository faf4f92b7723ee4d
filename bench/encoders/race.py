"""The run: every contestant in a process of its own, round by round in turn; then memory, each time in a fresh one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..contestant import Progress, Workplace, rotated
from ..environments import Interpreters
from ..machine import describe_machine, load_average
from ..results import SCHEMA
from ..variants import Variant
from .contestants import FULL, PEER, Runner, contestants, measure_memory
from .results import Agreement, EncodersReport, MemoryPoint
from .shapes import ModernBertShape, write_checkpoint
from .summary import agreement, summarise_encoders
from .workloads import Workload, memory_lengths, mixed_workload, single_workloads, write_ids

__all__ = ["EncoderSettings", "measure_growth", "race", "run_encoders"]

_WARM = (16,)
"""Tokens of what a process runs before its memory is measured: enough to have everything in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSettings:
    """What to run.

    :param dtype: ``float32`` or ``bfloat16``.
    :param lengths: tokens of the single texts, rising.
    :param rounds: of every workload; None for what suits its length.
    :param timeout: seconds any single step of a worker may take.
    """

    shape: ModernBertShape
    dtype: str
    lengths: tuple[int, ...]
    rounds: int | None = None
    timeout: float = 1800.0


def run_encoders(settings: EncoderSettings, *, progress: Progress) -> EncodersReport:
    """Run the benchmark; a contestant that fails is reported with its reason, and the others go on.

    :raises ValueError: lengths that are out of order, or longer than the model reads.
    """
    shape = settings.shape
    workloads = (*single_workloads(settings.lengths, rounds=settings.rounds), mixed_workload(rounds=settings.rounds))
    if settings.lengths[-1] > shape.positions:
        raise ValueError(f"the model reads {shape.positions} tokens at most, not {settings.lengths[-1]}")
    before = load_average()
    with tempfile.TemporaryDirectory(prefix="vsr-bench-") as temporary:
        where = Workplace(Path(temporary), settings.timeout, Interpreters(progress), progress)
        progress("writing the checkpoint")
        checkpoint = write_checkpoint(where.folder / "model", shape)
        runners = [Runner(each, where, checkpoint) for each in contestants(shape, settings.dtype)]
        agreements = race(runners, workloads, where, vocabulary=shape.vocabulary)
        lengths = memory_lengths(settings.lengths)
        memory = measure_growth(
            [runner.variant for runner in runners], lengths, where, checkpoint, vocabulary=shape.vocabulary
        )
        results = tuple(runner.result(memory[runner.variant.name]) for runner in runners)
    return EncodersReport(
        schema=SCHEMA,
        command="encoders",
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        load_average=(before, load_average()),
        shape=shape,
        dtype=settings.dtype,
        workloads=workloads,
        contestants=results,
        agreements=agreements,
        summary=summarise_encoders(workloads, results, agreements),
        notes=_notes(memory),
    )


def race(
    runners: Sequence[Runner], workloads: Sequence[Workload], where: Workplace, *, vocabulary: int
) -> tuple[Agreement, ...]:
    """Let all contestants run all rounds of all workloads in turn; gives how far their answers are apart."""
    ids = {each.name: _ids(each.lengths, where, vocabulary) for each in workloads}
    agreements: list[Agreement] = []
    with ExitStack() as stack:
        for runner in runners:
            runner.start(stack, _ids(_WARM, where, vocabulary))
            for workload in workloads:
                if workload.needs_warm_up:
                    runner.warm_up(ids[workload.name])
        for number in range(max(workload.rounds for workload in workloads)):
            for workload in workloads:
                if number >= workload.rounds:
                    continue
                where.progress(f"round {number + 1} of {workload.rounds}: {_named(workload)}")
                for runner in rotated(runners, number):
                    runner.measure(workload, ids[workload.name])
                if number == 0:
                    agreements += _compare(runners, workload.name)
    return tuple(agreements)


def measure_growth(
    variants: Sequence[Variant], lengths: Sequence[int], where: Workplace, checkpoint: Path, *, vocabulary: int
) -> Mapping[str, tuple[MemoryPoint, ...]]:
    """By contestant, what a pass over one text of each length adds to a fresh process."""
    points: dict[str, list[MemoryPoint]] = {variant.name: [] for variant in variants}
    warm = _ids(_WARM, where, vocabulary)
    for tokens in lengths:
        where.progress(f"memory: {tokens} tokens")
        ids = _ids((tokens,), where, vocabulary)
        for variant in variants:
            point = measure_memory(variant, where, checkpoint, tokens=tokens, ids=ids, warm=warm)
            points[variant.name].append(point)
    return {name: tuple(found) for name, found in points.items()}


def _compare(runners: Sequence[Runner], workload: str) -> list[Agreement]:
    """Of the two that give the same answer, unless one of them has left."""
    paths = {runner.variant.name: runner.save() for runner in runners if runner.variant.name in (FULL, PEER)}
    ours, theirs = paths.get(FULL), paths.get(PEER)
    return [agreement(workload, ours, theirs)] if ours is not None and theirs is not None else []


def _ids(lengths: Sequence[int], where: Workplace, vocabulary: int) -> Path:
    return write_ids(lengths, where.folder / f"ids-{len(lengths)}-{sum(lengths)}.json", vocabulary=vocabulary)


def _named(workload: Workload) -> str:
    if len(workload.lengths) == 1:
        return f"{workload.tokens} tokens"
    return f"{len(workload.lengths)} texts of {workload.tokens} tokens in all"


def _notes(memory: Mapping[str, Sequence[MemoryPoint]]) -> tuple[str, ...]:
    found = [point.memory for points in memory.values() for point in points if point.memory is not None]
    if all(each.peak_is_its_own for each in found):
        return ()
    return ("the system counts no peak of a pass alone, so memory has the peak while loading in it",)
