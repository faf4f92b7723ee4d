"""``vsr tag``: the labelled spans of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import typer

from ..wire import to_json
from .activity import watching
from .answering import Answer, ask_in_parts, show_cut
from .inputs import gather_texts
from .options import (
    ConfigOption,
    FileOption,
    JsonOption,
    LayerOption,
    ModelOption,
    TextsArgument,
    TimeoutOption,
    TruncateOption,
)
from .output import Page, one_line, print_json
from .session import open_runtime

if TYPE_CHECKING:
    from ..contract import Aggregation, Span, TaggingResponse, TaggingResult, Truncation

__all__ = ["tag"]

_Answer: TypeAlias = "Answer[str, TaggingResponse]"


def tag(
    texts: TextsArgument = None,
    *,
    model: ModelOption = "default",
    aggregation: Annotated[
        str,
        typer.Option(
            "--aggregation",
            metavar="HOW",
            help="How token labels become spans: 'none', 'simple', 'first', 'average' or 'max'.",
        ),
    ] = "simple",
    layer: LayerOption = None,
    truncate: TruncateOption = "error",
    file: FileOption = None,
    timeout: TimeoutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the labelled spans of texts, such as names; offsets count code points."""
    asked = gather_texts(texts, file, what="TEXT")
    with watching(f"loading {model}") as activity, open_runtime(config, activity=activity) as runtime:
        answer = ask_in_parts(
            lambda part, seconds: runtime.tag(
                part,
                model=model,
                aggregation=cast("Aggregation", aggregation),
                layer=layer,
                truncate=cast("Truncation", truncate),
                timeout=seconds,
            ),
            asked,
            runtime=runtime,
            timeout=timeout,
            activity=activity,
        )
    if as_json:
        _print(answer)
    else:
        _show(answer)


def _print(answer: _Answer) -> None:
    results = [{"text": text, **to_json(result)} for text, result in zip(answer.asked, _results(answer), strict=True)]
    unit = answer.responses[0].offset_unit
    print_json("tag", {"results": results, "offset_unit": unit} | answer.facts())


def _show(answer: _Answer) -> None:
    page, results = Page(), _results(answer)
    if page.terminal and len(results) == 1:
        page.pieces(_marked(answer.asked[0], results[0].spans))
        page.line()
    page.table(
        ["#", "start", "end", "label", "score", "text"],
        [
            (str(index), str(span.start), str(span.end), one_line(span.label), f"{span.score:.4f}", one_line(span.text))
            for index, result in enumerate(results)
            for span in result.spans
        ],
        right=("#", "start", "end", "score"),
    )
    show_cut(page, answer.inputs(), noun="text")
    found = sum(len(result.spans) for result in results)
    page.line(f"{found} {'span' if found == 1 else 'spans'} by {answer.closing('text')}", style="dim")


def _results(answer: _Answer) -> list[TaggingResult]:
    return [result for response in answer.responses for result in response.results]


def _marked(text: str, spans: Sequence[Span]) -> Iterator[tuple[str, str]]:
    """The pieces of a text with their styles, each span with its label after it; of spans that overlap, the first."""
    shown, done = one_line(text), 0
    for span in spans:
        if span.start < done:
            continue
        yield shown[done : span.start], ""
        yield shown[span.start : span.end], "bold underline"
        yield f" {one_line(span.label)}", "dim"
        done = span.end
    yield shown[done:], ""
