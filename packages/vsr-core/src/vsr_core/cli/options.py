"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "ConfigOption",
    "FileOption",
    "JsonOption",
    "LayerOption",
    "LogitsOption",
    "ModelOption",
    "TextsArgument",
    "TimeoutOption",
    "TruncateOption",
]

TextsArgument = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="The texts; else the lines of stdin.")]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="The configuration; else the file VSR_CONFIG names, else ./vsr.yaml, else what plugins bring.",
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object; errors are JSON on stderr.")]

ModelOption = Annotated[
    str,
    typer.Option("--model", "-m", metavar="NAME", help="A role, a model of the catalog, or <backend>:<model>."),
]

TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", help="The time for everything, loading included."),
]

FileOption = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", help="Read more texts, one a line, blank lines too; '-' is stdin."),
]

LayerOption = Annotated[int | None, typer.Option("--layer", metavar="N", help="Leave after this many layers.")]

LogitsOption = Annotated[bool, typer.Option("--logits", help="Give the raw numbers of the model's head too.")]

TruncateOption = Annotated[
    str,
    typer.Option(
        "--truncate",
        metavar="HOW",
        help="What becomes of a text over the limit: 'error' refuses it, 'end' and 'start' cut it there, 'window' reads"
        " it in overlapping windows.",
    ),
]
