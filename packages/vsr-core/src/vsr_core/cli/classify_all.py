"""``vsr classify-all``: several classifiers and taggers asked about the same texts at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..wire import to_json
from .activity import watching
from .inputs import gather_texts
from .options import ConfigOption, FileOption, JsonOption, TextsArgument, TimeoutOption, TruncateOption
from .output import Page, bar, one_line, print_json, seconds_text
from .session import open_runtime

if TYPE_CHECKING:
    from ..contract import Aggregation, MultiTaskResponse, TaskOutcome, Truncation

__all__ = ["classify_all"]


def classify_all(
    texts: TextsArgument = None,
    *,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task", "-t", metavar="NAME", help="A role, a model or <backend>:<model>; give it once for each task."
        ),
    ] = None,
    aggregation: Annotated[
        str,
        typer.Option(
            "--aggregation",
            metavar="HOW",
            help="How token labels become spans: 'none', 'simple', 'first', 'average' or 'max'.",
        ),
    ] = "simple",
    truncate: TruncateOption = "error",
    file: FileOption = None,
    timeout: TimeoutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask several classifiers and taggers about the same texts; adapters of one base are answered together."""
    asked = gather_texts(texts, file, what="TEXT")
    if not task:
        raise typer.BadParameter("give at least one", param_hint="--task")
    began = time.monotonic()
    with watching(f"loading {', '.join(task)}"), open_runtime(config) as runtime:
        response = runtime.classify_all(
            asked,
            tasks=task,
            aggregation=cast("Aggregation", aggregation),
            truncate=cast("Truncation", truncate),
            timeout=timeout,
        )
    seconds = time.monotonic() - began
    if as_json:
        facts = {name: to_json(getattr(response, name)) for name in ("outcomes", "shared_layers", "envelope")}
        print_json("classify-all", {"texts": asked, **facts, "seconds": seconds})
    else:
        _show(asked, response, seconds)


def _show(asked: Sequence[str], response: MultiTaskResponse, seconds: float) -> None:
    page = Page()
    page.table(
        ["#", "task", "label", "score", "", "text"],
        [
            (str(index), outcome.task, *row)
            for index, text in enumerate(asked)
            for outcome in response.outcomes
            for row in _rows(outcome, index, text, plain=page.plain)
        ],
        right=("#", "score"),
    )
    for outcome in response.outcomes:
        if outcome.error is not None:
            page.line(f"{outcome.task} failed: {outcome.error['message']}", style="bold red")
    page.line(
        f"{len(asked)} x {len(response.outcomes)} answers in {seconds_text(seconds)}, loading included{_shared(response)}",
        style="dim",
    )


def _rows(outcome: TaskOutcome, index: int, text: str, *, plain: bool) -> Iterator[tuple[str, str, str, str]]:
    """The rows of one task about one text: its label, its spans, or that it failed."""
    from ..contract import ClassificationResponse

    if outcome.response is None:
        yield "failed", "", "", one_line(text, 48)
    elif isinstance(outcome.response, ClassificationResponse):
        result = outcome.response.results[index]
        filled = bar(min(1.0, max(0.0, result.score)), plain=plain)
        yield one_line(result.label), f"{result.score:.4f}", filled, one_line(text, 48)
    else:
        spans = outcome.response.results[index].spans
        for span in spans:
            yield one_line(span.label), f"{span.score:.4f}", bar(span.score, plain=plain), one_line(span.text, 48)
        if not spans:
            yield "no spans", "", "", one_line(text, 48)


def _shared(response: MultiTaskResponse) -> str:
    if response.shared_layers is None:
        return ""
    return f"; one base, of which {response.shared_layers} layers ran once for all tasks"
