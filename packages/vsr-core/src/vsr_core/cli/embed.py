"""``vsr embed``: the vectors of texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, cast

import typer

from ..errors import InvalidInputError
from .activity import watching
from .answering import Answer, ask_in_parts, truncation_text
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
from .output import SCHEMA, Page, one_line, print_json
from .session import open_runtime

if TYPE_CHECKING:
    from ..contract import EmbeddingResponse, Truncation

__all__ = ["embed"]

_SHOWN: Final = 4
"""How many values of a vector people are shown."""

_Answer: TypeAlias = "Answer[str, EmbeddingResponse]"


def embed(
    texts: TextsArgument = None,
    *,
    model: ModelOption = "default",
    dimensions: Annotated[
        int | None, typer.Option("--dimensions", "-d", metavar="N", help="Keep the leading N dimensions (Matryoshka).")
    ] = None,
    layer: LayerOption = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="NAME", help="A prompt of the model, by name.")
    ] = None,
    truncate: TruncateOption = "end",
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
    with watching(f"loading {model}") as activity, open_runtime(config, activity=activity) as runtime:
        answer = ask_in_parts(
            lambda part, seconds: runtime.embed(
                part,
                model=model,
                dimensions=dimensions,
                layer=layer,
                prompt=prompt,
                truncate=cast("Truncation", truncate),
                timeout=seconds,
            ),
            asked,
            runtime=runtime,
            timeout=timeout,
            activity=activity,
        )
    if out is not None:
        _write(out, answer)
    if as_json:
        print_json("embed", _facts(answer) | ({"out": str(out)} if out is not None else {"vectors": _rows(answer)}))
    else:
        _show(answer, out)


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
            body = {"schema": SCHEMA, "command": "embed"} | _facts(answer) | {"vectors": _rows(answer)}
            out.write_text(json.dumps(body, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{str(out)!r} cannot be written: {error.strerror or error}", param="out") from None


def _facts(answer: _Answer) -> dict[str, Any]:
    """Everything but the vectors, in JSON-ready form."""
    first = answer.responses[0]
    space = {"dimensions": int(first.vectors.shape[1]), "normalized": first.normalized, "space": first.space}
    return space | answer.facts()


def _rows(answer: _Answer) -> list[list[float]]:
    return [row for response in answer.responses for row in response.vectors.tolist()]


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
        page.line(f"{len(answer.asked)} x {width} written to {out}")
    page.line(answer.closing("text"), style="dim")


def _table_rows(answer: _Answer, width: int) -> list[tuple[str, ...]]:
    rows = _rows(answer)
    return [
        (
            str(index),
            str(width),
            "-" if report.tokens is None else str(report.tokens),
            truncation_text(report),
            ", ".join(f"{value:+.4f}" for value in rows[index][:_SHOWN]) + (", ..." if width > _SHOWN else ""),
            one_line(text, 48),
        )
        for index, (text, report) in enumerate(zip(answer.asked, answer.inputs(), strict=True))
    ]
