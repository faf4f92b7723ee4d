"""``vsr similar`` and ``vsr rerank``: texts by how close they are to another."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..wire import to_json
from .activity import watching
from .answering import show_cut, who
from .inputs import gather_texts
from .options import ConfigOption, FileOption, JsonOption, ModelOption, TimeoutOption, TruncateOption
from .output import Page, bar, one_line, print_json, seconds_text
from .session import open_runtime

if TYPE_CHECKING:
    from ..contract import Truncation

__all__ = ["rerank", "shares", "show_ranking", "similar"]


def similar(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to compare with.")],
    candidates: Annotated[list[str] | None, typer.Argument(metavar="CANDIDATE", help="The others.")] = None,
    *,
    model: ModelOption = "default",
    file: FileOption = None,
    timeout: TimeoutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a text with others, closest first."""
    others = gather_texts(candidates, file, what="CANDIDATE")
    began = time.perf_counter()
    with watching(f"asking {model}") as activity, open_runtime(config, activity=activity) as runtime:
        answer = runtime.similarity(text, others, model=model, timeout=timeout)
        seconds = time.perf_counter() - began
    scores = [float(score) for score in answer.scores]
    if as_json:
        print_json(
            "similar",
            {"scores": scores, "function": answer.function, "envelope": to_json(answer.envelope), "seconds": seconds},
        )
        return
    page = Page()
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    show_ranking(page, [(index, scores[index], others[index]) for index in order], kind=answer.function)
    show_cut(page, answer.envelope.inputs, noun="text")
    page.line(f"{answer.function} by {who(answer.envelope)}, {seconds_text(seconds)} in all", style="dim")


def rerank(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What is looked for.")],
    documents: Annotated[list[str] | None, typer.Argument(metavar="DOC", help="Where it is looked for.")] = None,
    *,
    top_n: Annotated[int | None, typer.Option("--top-n", "-n", metavar="N", help="Show the best N alone.")] = None,
    model: ModelOption = "default",
    truncate: TruncateOption = "end",
    file: FileOption = None,
    timeout: TimeoutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank documents by relevance to a query."""
    texts = gather_texts(documents, file, what="DOC")
    began = time.perf_counter()
    with watching(f"asking {model}") as activity, open_runtime(config, activity=activity) as runtime:
        answer = runtime.rerank(
            query, texts, top_n=top_n, model=model, truncate=cast("Truncation", truncate), timeout=timeout
        )
        seconds = time.perf_counter() - began
    if as_json:
        results = [{"index": item.index, "score": item.score, "text": texts[item.index]} for item in answer.results]
        body = {"results": results, "score_kind": answer.score_kind, "envelope": to_json(answer.envelope)}
        print_json("rerank", body | {"seconds": seconds})
        return
    page = Page()
    ranked = [(item.index, item.score, texts[item.index]) for item in answer.results]
    show_ranking(page, ranked, kind=answer.score_kind)
    show_cut(page, answer.envelope.inputs, noun="input")
    page.line(f"{answer.score_kind} by {who(answer.envelope)}, {seconds_text(seconds)} in all", style="dim")


def show_ranking(page: Page, ranked: Sequence[tuple[int, float, str]], *, kind: str) -> None:
    """Rows of (index, score, text) as they are, each with a bar."""
    filled = shares([score for _, score, _ in ranked], kind=kind)
    page.table(
        ["#", "score", "", "text"],
        [
            (str(index), f"{score:.4f}", bar(share, plain=page.plain), one_line(text))
            for (index, score, text), share in zip(ranked, filled, strict=True)
        ],
        right=("#", "score"),
    )


def shares(scores: Sequence[float], *, kind: str) -> list[float]:
    """How much of a bar each score fills: itself where its kind has a scale, else its place between the extremes."""
    if kind in ("cosine", "probability"):
        return list(scores)
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]
