"""``vsr merge``: a LoRA adapter and its base as one checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .activity import watching
from .options import ConfigOption, JsonOption
from .output import Page, print_json, seconds_text
from .session import open_runtime

if TYPE_CHECKING:
    from ..contract import ExportReport

__all__ = ["merge"]


def merge(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An adapter of the catalog, or <backend>:<adapter>.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to make.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge a LoRA adapter into its base, in float32, checked against the adapter."""
    with watching(f"reading {model}") as activity, open_runtime(config, activity=activity) as runtime:
        report = runtime.merge(model, out=out, progress=activity.step)
    if as_json:
        print_json("merge", _facts(report))
    else:
        _show(report)


def _facts(report: ExportReport) -> dict[str, object]:
    return {
        "folder": str(report.folder),
        "files": list(report.files),
        "max_abs": report.max_abs,
        "texts": report.texts,
        "seconds": report.seconds,
    }


def _show(report: ExportReport) -> None:
    page = Page()
    page.heading(str(report.folder))
    page.pairs(
        (
            ("files", ", ".join(report.files)),
            ("differs by", f"{report.max_abs:.1e} at most, over {report.texts} texts"),
            ("took", seconds_text(report.seconds)),
        )
    )
    page.line(f"to use it, give it to a model of the catalog: `source: {report.folder}`", style="dim")
