"""``vsr embed``: the vectors of texts."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..errors import DeadlineExceededError, InvalidInputError
from ..wire import to_json
from .activity import Activity, watching
from .inputs import gather_texts
from .options import ConfigOption, FileOption, JsonOption, ModelOption, TimeoutOption
from .output import SCHEMA, Page, one_line, print_json, seconds_text
from .ranking import who
from .session import info_of, open_runtime

if TYPE_CHECKING:
    from ..contract import EmbeddingResponse, InputReport, ModelInfo
    from ..runtime import Runtime

__all__ = ["embed", "truncation_text"]

_CHUNK: Final = 256
"""How many texts go into one request: enough to fill batches, few enough to show how it goes."""

_SHOWN: Final = 4
"""How many values of a vector people are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    model: str
    dimensions: int | None
    layer: int | None
    prompt: str | None
    timeout: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What came of all texts, in order."""

    texts: tuple[str, ...]
    responses: tuple[EmbeddingResponse, ...]
    info: ModelInfo
    seconds: float

    def rows(self) -> list[list[float]]:
        """The vectors as lists of numbers."""
        return [row for response in self.responses for row in response.vectors.tolist()]

    def inputs(self) -> list[InputReport]:
        """What became of each text."""
        from ..contract import InputReport

        return [
            report
            for response in self.responses
            for report in response.envelope.inputs or (InputReport(),) * len(response.vectors)
        ]


def embed(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="The texts; else the lines of stdin.")
    ] = None,
    *,
    model: ModelOption = "default",
    dimensions: Annotated[
        int | None, typer.Option("--dimensions", "-d", metavar="N", help="Keep the leading N dimensions (Matryoshka).")
    ] = None,
    layer: Annotated[int | None, typer.Option("--layer", metavar="N", help="Leave after this many layers.")] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="NAME", help="A prompt of the model, by name.")
    ] = None,
    file: FileOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the vectors to this .npy or .json file.")
    ] = None,
    timeout: TimeoutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Embed texts; --json and --out give the vectors in full."""
    _check_target(out)
    asked = gather_texts(texts, file, what="TEXT")
    ask = _Ask(model=model, dimensions=dimensions, layer=layer, prompt=prompt, timeout=timeout)
    with watching(f"loading {model}") as activity, open_runtime(config, activity=activity) as runtime:
        answer = _ask_in_chunks(runtime, asked, ask, activity)
    if out is not None:
        _write(out, answer)
    if as_json:
        print_json("embed", _facts(answer) | ({"out": str(out)} if out is not None else {"vectors": answer.rows()}))
    else:
        _show(answer, out)


def _ask_in_chunks(runtime: Runtime, texts: tuple[str, ...], ask: _Ask, activity: Activity) -> _Answer:
    began = time.monotonic()
    responses: list[EmbeddingResponse] = []
    for start in range(0, len(texts), _CHUNK):
        chunk = texts[start : start + _CHUNK]
        responses.append(
            runtime.embed(
                chunk,
                model=ask.model,
                dimensions=ask.dimensions,
                layer=ask.layer,
                prompt=ask.prompt,
                timeout=_remaining(ask.timeout, began, done=start),
            )
        )
        if start == 0:
            activity.step(f"embedding {len(texts)} texts", total=len(texts))
        activity.advance(len(chunk))
    seconds = time.monotonic() - began
    info = info_of(runtime, responses[0].envelope.backend_id)
    return _Answer(texts=texts, responses=tuple(responses), info=info, seconds=seconds)


def _remaining(timeout: float | None, began: float, *, done: int) -> float | None:
    """What is left of the time for all texts; the first request is given what the user wrote, right or wrong."""
    if timeout is None or done == 0:
        return timeout
    left = timeout - (time.monotonic() - began)
    if left <= 0:
        raise DeadlineExceededError(f"{timeout:g} s passed when {done} texts were embedded", timeout=timeout)
    return left


def _check_target(out: Path | None) -> None:
    """Refuse a file that could not be written before anybody waits for what would be in it."""
    if out is None:
        return
    if out.suffix not in (".npy", ".json"):
        raise typer.BadParameter(f"{str(out)!r}: the name must end in .npy or .json", param_hint="--out")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InvalidInputError(
            f"{str(out)!r} cannot be written: its folder must exist, and it be no folder", param="out"
        )


def _write(out: Path, answer: _Answer) -> None:
    try:
        if out.suffix == ".npy":
            import numpy as np  # where there are vectors, there is numpy

            with out.open("wb") as file:
                np.save(file, np.concatenate([response.vectors for response in answer.responses]))
        else:
            body = {"schema": SCHEMA, "command": "embed"} | _facts(answer) | {"vectors": answer.rows()}
            out.write_text(json.dumps(body, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{str(out)!r} cannot be written: {error.strerror or error}", param="out") from None


def _facts(answer: _Answer) -> dict[str, Any]:
    """Everything but the vectors, in JSON-ready form."""
    first = answer.responses[0]
    envelope = to_json(first.envelope) | {
        "inputs": to_json(answer.inputs()),
        "usage": {"input_tokens": _tokens(answer)},
    }
    return {
        "count": len(answer.texts),
        "dimensions": int(first.vectors.shape[1]),
        "normalized": first.normalized,
        "space": first.space,
        "envelope": envelope,
        "seconds": answer.seconds,
        "load_seconds": answer.info.load_seconds,
    }


def _tokens(answer: _Answer) -> int | None:
    counts = [report.tokens for report in answer.inputs()]
    return None if None in counts else sum(count for count in counts if count is not None)


def _show(answer: _Answer, out: Path | None) -> None:
    page = Page()
    width = int(answer.responses[0].vectors.shape[1])
    if out is None:
        page.table(
            ["#", "dims", "tokens", "truncated", "values", "text"],
            _table_rows(answer, width),
            right=("#", "dims", "tokens"),
        )
    else:
        page.line(f"{len(answer.texts)} x {width} written to {out}")
    for line in _closing(answer):
        page.line(line, style="dim")


def _table_rows(answer: _Answer, width: int) -> list[tuple[str, ...]]:
    rows = answer.rows()
    return [
        (
            str(index),
            str(width),
            "-" if report.tokens is None else str(report.tokens),
            truncation_text(report),
            ", ".join(f"{value:+.4f}" for value in rows[index][:_SHOWN]) + (", ..." if width > _SHOWN else ""),
            one_line(text, 48),
        )
        for index, (text, report) in enumerate(zip(answer.texts, answer.inputs(), strict=True))
    ]


def truncation_text(report: InputReport) -> str:
    """Whether a text was cut, and how many tokens it had."""
    if report.truncated is None:
        return "-"
    if not report.truncated:
        return "no"
    return "yes" if report.total_tokens is None else f"yes, of {report.total_tokens}"


def _closing(answer: _Answer) -> Sequence[str]:
    envelope, tokens = answer.responses[0].envelope, _tokens(answer)
    loading = answer.info.load_seconds
    parts = [
        "1 text" if len(answer.texts) == 1 else f"{len(answer.texts)} texts",
        f"{tokens} tokens" if tokens is not None else None,
        f"{seconds_text(answer.seconds)} in all",
        f"{seconds_text(loading)} of them loading" if loading is not None else None,
    ]
    return [f"{who(envelope)}: {', '.join(part for part in parts if part)}"]
