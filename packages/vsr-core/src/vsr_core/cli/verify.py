"""``vsr verify``: what this host claims, put to the test and written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from ..wire import to_json
from .activity import Activity, watching
from .failures import FAILED
from .options import ConfigOption, JsonOption
from .output import Page, print_json, seconds_text
from .session import config_file

if TYPE_CHECKING:
    from ..plugins import OutcomeState, Receipt, ReceiptCell
    from ..testing.verification import Progress

__all__ = ["verify"]


def verify(
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="A model of the configuration; without one, all that this host claims."),
    ] = None,
    *,
    receipt: Annotated[
        Path | None, typer.Option("--receipt", metavar="FILE", help="Write what was run, and where, as JSON.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try what the backends claim, and provoke what they refuse."""
    if receipt is not None:
        from ..plugins import check_place

        check_place(receipt)
    path = config_file(config)
    with watching("looking at this machine") as activity:
        found = _verify(path, model, _reporting(activity))
    if receipt is not None:
        found.write(receipt)
    failed = found.count("failed") > 0
    if as_json:
        print_json("verify", {"ok": not failed, "file": str(receipt) if receipt else None, "receipt": to_json(found)})
    else:
        _show(found, receipt)
    if failed:
        raise typer.Exit(FAILED)


def _verify(source: Path | None, model: str | None, progress: Progress) -> Receipt:
    try:
        from ..testing.verification import verify_host, verify_model
    except ImportError as error:
        missing = error.name or str(error)
        if missing.startswith("vsr_core"):
            raise
        raise ConfigError(
            f'verifying needs {missing}, which is not installed: pip install "vsr-core[testing]"'
        ) from error
    if model is None:
        return verify_host(source, progress=progress)
    return verify_model(source, model, progress=progress)


def _reporting(activity: Activity) -> Progress:
    def report(text: str, done: int, total: int) -> None:
        activity.step(f"{text} ({done + 1} of {total})", total=total)
        activity.advance(done)

    return report


def _show(found: Receipt, file: Path | None) -> None:
    page = Page()
    styles = {"supported": "green", "refused": "dim"}
    for backend, facts in found.backends.items():
        cells = [cell for cell in found.cells if cell.backend == backend]
        page.heading(backend)
        if not facts.usable:
            page.line(f"  cannot be used here: {facts.reason}", style="yellow")
        page.table(
            ["capability", "claim", "verified", "failed", "not run", "largest difference", "took"],
            _rows(cells),
            right=("verified", "failed", "not run", "largest difference", "took"),
            styles=styles,
        )
        for reason, about in _by_reason(cells, "not_run"):
            page.line(f"  not run ({len(about)}): {reason}", style="dim")
        for reason, about in _by_reason(cells, "failed"):
            page.line(f"  failed ({', '.join(map(_named, about))}): {reason}", style="red")
    counts = ", ".join(f"{found.count(state)} {state.replace('_', ' ')}" for state in ("verified", "failed", "not_run"))
    page.line(counts, style="bold")
    if file is not None:
        page.line(f"receipt: {file}; `vsr matrix --receipt {file}` shows what it vouches for", style="dim")


def _rows(cells: Sequence[ReceiptCell]) -> list[list[str]]:
    rows = []
    for capability, claim in dict.fromkeys((cell.capability, cell.claim) for cell in cells):
        about = [cell for cell in cells if (cell.capability, cell.claim) == (capability, claim)]
        counts = Counter(cell.state for cell in about)
        gaps = [cell.measured for cell in about if cell.measured is not None]
        rows.append(
            [
                capability.value,
                claim,
                *(str(counts[state]) if counts[state] else "-" for state in ("verified", "failed", "not_run")),
                f"{max(gaps):.1e}" if gaps else "-",
                seconds_text(sum(cell.seconds for cell in about)) or "-",
            ]
        )
    return rows


def _by_reason(cells: Sequence[ReceiptCell], state: OutcomeState) -> Iterable[tuple[str, list[ReceiptCell]]]:
    found: dict[str, list[ReceiptCell]] = {}
    for cell in cells:
        if cell.state == state:
            found.setdefault(cell.reason or "no reason", []).append(cell)
    return found.items()


def _named(cell: ReceiptCell) -> str:
    parts = (cell.capability, cell.family, cell.artifact, cell.feature)
    return " ".join(str(part) for part in parts if part is not None)
