"""``vsr export``: a model in the form another backend reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from .activity import watching
from .options import ConfigOption, JsonOption
from .output import Page, print_json, seconds_text
from .session import open_runtime

if TYPE_CHECKING:
    from ..contract import ExportReport, Quantization

__all__ = ["export"]


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model of the catalog, or <backend>:<model>.")],
    *,
    to: Annotated[str, typer.Option("--to", metavar="BACKEND", help="The backend that is to read it.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to make.")],
    layers: Annotated[
        str | None,
        typer.Option("--layers", "-l", metavar="N,N,...", help="Layers to leave at, beside the last."),
    ] = None,
    quantize: Annotated[
        str | None, typer.Option("--quantize", "-q", metavar="HOW", help="Make the weights smaller: int8.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a model in the form another backend reads, checked against the original."""
    exits = _layers(layers)
    with watching(f"reading {model}") as activity, open_runtime(config, activity=activity) as runtime:
        report = runtime.export(
            model,
            to=to,
            out=out,
            layers=exits,
            quantize=cast("Quantization | None", quantize),
            progress=activity.step,
        )
    if as_json:
        print_json("export", _facts(report))
    else:
        _show(report)


def _layers(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no list of layers such as 6,11,16", param_hint="--layers") from None


def _facts(report: ExportReport) -> dict[str, object]:
    return {
        "folder": str(report.folder),
        "manifest": str(report.manifest),
        "files": list(report.files),
        "layers": list(report.layers),
        "max_abs": report.max_abs,
        "texts": report.texts,
        "seconds": report.seconds,
        "cosine": report.cosine,
    }


def _show(report: ExportReport) -> None:
    page = Page()
    page.heading(str(report.folder))
    page.pairs(
        (
            ("files", ", ".join(report.files)),
            ("layers", ", ".join(map(str, report.layers))),
            ("differs by", f"{report.max_abs:.1e} at most, over {report.texts} texts"),
            ("cosine", None if report.cosine is None else f"{report.cosine:.4f} on average"),
            ("took", seconds_text(report.seconds)),
        )
    )
    page.line(f"to use it, give it to a model of the catalog: `source: {report.folder}`", style="dim")
