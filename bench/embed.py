"""The embedding benchmark: every variant in a process of its own, rounds in turn."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .contestant import Contestant, Progress, Workplace, rotated
from .corpus import MAX_TOKENS, MODEL, count_tokens, write_texts
from .environments import Interpreters
from .exports import Exports
from .machine import describe_machine, load_average
from .process import WorkerError
from .protocol import Ask, Done, Loaded, RunTime
from .results import SCHEMA, EmbedReport
from .summary import summarise
from .variants import REFERENCE, Variant

__all__ = ["EmbedSettings", "run_embed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedSettings:
    """What to run.

    :param timeout: seconds any single step of a worker may take.
    """

    variants: tuple[Variant, ...]
    texts: tuple[str, ...]
    rounds: int = 5
    timeout: float = 1800.0


def run_embed(settings: EmbedSettings, *, progress: Progress) -> EmbedReport:
    """Run the benchmark; a variant that fails is reported with its reason, and the others go on."""
    notes: list[str] = []
    before = load_average()
    with tempfile.TemporaryDirectory(prefix="vsr-bench-") as folder, ExitStack() as stack:
        exports = Exports(Path(folder), progress)
        where = Workplace(Path(folder), settings.timeout, Interpreters(progress), progress, exports)
        write_texts(settings.texts, where.texts)
        contestants = [Contestant(variant, where, stack) for variant in settings.variants]
        for contestant in contestants:
            contestant.start()
        reference = _reference(where, notes)
        for number in range(settings.rounds):
            progress(f"round {number + 1} of {settings.rounds}")
            for contestant in rotated(contestants, number):
                contestant.measure()
        after = load_average()
        results = tuple(contestant.result(reference) for contestant in contestants)
    tokens = count_tokens(settings.texts)
    notes += [
        f"{result.name} counts {result.tokens} tokens where {tokens} were expected: it does not read the same input"
        for result in results
        if result.tokens not in (None, tokens)
    ]
    return EmbedReport(
        schema=SCHEMA,
        command="embed",
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        load_average=(before, after),
        model=MODEL,
        texts=len(settings.texts),
        tokens=tokens,
        truncated_to=MAX_TOKENS,
        variants=results,
        summary=summarise(results, tokens=tokens),
        notes=tuple(notes),
    )


def _reference(where: Workplace, notes: list[str]) -> Path | None:
    """The reference's vectors; without them there are no cosines, and a note says why."""
    where.progress(f"reference: {REFERENCE.label}")
    path = where.vectors(REFERENCE)
    try:
        with where.start(REFERENCE) as worker:
            worker.ask(Ask(command="load", path=str(where.texts)), Loaded, timeout=where.timeout)
            worker.ask(Ask(command="run"), RunTime, timeout=where.timeout)
            worker.ask(Ask(command="save", path=str(path)), Done, timeout=where.timeout)
    except WorkerError as error:
        notes.append(f"no cosines, since the reference failed: {error}")
        return None
    return path
