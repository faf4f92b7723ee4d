"""``vsr demo``: the first five minutes, with a real model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..wire import to_json
from .activity import Activity, watching
from .models import choice_text
from .options import JsonOption
from .output import Page, one_line, print_json, seconds_text
from .ranking import show_ranking
from .session import config_file, info_of, opened

if TYPE_CHECKING:
    from .demo_run import DemoRun

__all__ = ["demo"]


def demo(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="A query, then documents; one text is asked of the demo's own."),
    ] = None,
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Ask its default model instead of the packaged one."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """See a real model embed, search and rank a few sentences."""
    from .demo_texts import DOCUMENTS, QUERY

    query, documents = (texts[0], tuple(texts[1:])) if texts else (QUERY, ())
    with watching("looking for a backend") as activity:
        found, checks = _run(config, query, documents or DOCUMENTS, activity)
    if as_json:
        print_json("demo", _body(found, checks))
    else:
        _show(found, checks)


def _run(
    config: Path | None, query: str, documents: tuple[str, ...], activity: Activity
) -> tuple[DemoRun, tuple[str, ...]]:
    from .demo_run import MODEL, MODEL_SOURCE, choose, run, verify

    source = config_file(config) if config is not None else {"catalog": {MODEL: {"source": MODEL_SOURCE}}}
    with opened(source, activity=activity) as runtime:
        activity.step("loading the model")
        if config is None:
            info = choose(runtime)
            model = str(info.backend_id)
        else:
            model = "default"
            info = info_of(runtime, runtime.embed(query).envelope.backend_id)
        activity.step("asking the model")
        found = run(runtime, model, info, query=query, documents=documents)
        return found, verify(runtime, model, found)


def _body(found: DemoRun, checks: tuple[str, ...]) -> dict[str, Any]:
    envelope = found.embedded.envelope
    return {
        "ok": True,
        "model": to_json(found.info),
        "query": found.query,
        "documents": list(found.documents),
        "embedding": {
            "count": len(found.texts),
            "dimensions": int(found.embedded.vectors.shape[1]),
            "seconds": found.embed_seconds,
            "seconds_per_text": found.embed_seconds / len(found.texts),
            "envelope": to_json(envelope),
        },
        "similarity": {
            "function": found.similar.function,
            "scores": [float(score) for score in found.similar.scores],
        },
        "rerank": {"score_kind": found.ranked.score_kind, "results": to_json(found.ranked.results)},
        "checks": list(checks),
    }


def _show(found: DemoRun, checks: tuple[str, ...]) -> None:
    page = Page()
    _show_model(page, found)
    page.line()
    page.heading("embedded")
    _show_vectors(page, found)
    page.line()
    page.heading(f"searched: {one_line(found.query)}")
    scores = [float(score) for score in found.similar.scores]
    page_rows = [(index, score, found.documents[index]) for index, score in enumerate(scores)]
    show_ranking(page, page_rows, kind=found.similar.function)
    page.line()
    page.heading("ranked, best first")
    ranked = [(item.index, item.score, found.documents[item.index]) for item in found.ranked.results]
    show_ranking(page, ranked, kind=found.ranked.score_kind)
    page.line()
    for line in checks:
        page.line(f"ok: {line}", style="green")
    page.line("next: `vsr matrix`, `vsr doctor`, `vsr embed TEXT`, `vsr --help`", style="dim")


def _show_model(page: Page, found: DemoRun) -> None:
    envelope, info = found.embedded.envelope, found.info
    per_text = seconds_text(found.embed_seconds / len(found.texts))
    tokens = envelope.usage.input_tokens
    page.heading(str(envelope.backend_id))
    page.pairs(
        [
            ("device", choice_text(info.device) or envelope.device),
            ("precision", choice_text(info.dtype) or envelope.dtype),
            ("provider", choice_text(info.provider) or envelope.provider),
            ("loaded in", seconds_text(info.load_seconds)),
            ("embedded in", f"{per_text} per text, {seconds_text(found.embed_seconds)} for {len(found.texts)}"),
            ("tokens", str(tokens) if tokens is not None else None),
            ("revision", info.revision),
        ]
    )


def _show_vectors(page: Page, found: DemoRun) -> None:
    vectors, reports = found.embedded.vectors.tolist(), found.embedded.envelope.inputs
    tokens = [str(report.tokens) if report.tokens is not None else "-" for report in reports] or ["-"] * len(vectors)
    page.table(
        ["tokens", "dims", "values", "text"],
        [
            (count, str(len(row)), ", ".join(f"{value:+.4f}" for value in row[:4]) + ", ...", one_line(text))
            for count, row, text in zip(tokens, vectors, found.texts, strict=True)
        ],
        right=("tokens", "dims"),
    )
