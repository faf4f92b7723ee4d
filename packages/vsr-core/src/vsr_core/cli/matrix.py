"""``vsr matrix``: what every backend can do here, and why not otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..wire import to_json
from .activity import watching
from .options import ConfigOption, JsonOption
from .output import Page, print_json
from .session import open_runtime

if TYPE_CHECKING:
    from ..contract import Limits
    from ..plugins import CapabilityMatrix, MatrixCell

__all__ = ["limits_text", "matrix"]


def matrix(
    *,
    probe: Annotated[
        bool, typer.Option("--probe", help="Look at this host too, which imports the frameworks.")
    ] = False,
    why: Annotated[bool, typer.Option("--why", help="Show limits, features and reasons, cell by cell.")] = False,
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", metavar="FILE", help="Mark what a receipt of `vsr verify` vouches for on this host."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which backend offers which capability."""
    with watching("asking the backends") as activity, open_runtime(config, activity=activity) as runtime:
        found = runtime.matrix(probe=probe)
    differing: dict[str, tuple[str, ...]] = {}
    if receipt is not None:
        found, differing = _vouched(found, receipt)
    if as_json:
        print_json("matrix", {"probed": probe, "cells": to_json(found.cells), "differing": to_json(differing)})
    elif not found.cells:
        Page().line("no backend is installed; `vsr plugins` lists what is, and why it is not used")
    elif why:
        _show_reasons(found)
    else:
        _show_grid(found)
    if not as_json:
        for backend, reasons in differing.items():
            Page().line(f"the receipt does not count for {backend}: {'; '.join(reasons)}", style="yellow")


def _vouched(found: CapabilityMatrix, path: Path) -> tuple[CapabilityMatrix, dict[str, tuple[str, ...]]]:
    """The matrix with what a receipt vouches for, and for which backends it does not count, with the reasons."""
    from ..plugins import differences, read_receipt

    receipt = read_receipt(path)
    backends = sorted({cell.backend for cell in found.cells})
    differing = {name: reasons for name in backends if (reasons := differences(receipt, name))}
    return found.vouched(receipt), differing


def _show_grid(found: CapabilityMatrix) -> None:
    page = Page()
    backends = sorted({cell.backend for cell in found.cells})
    capabilities = list(dict.fromkeys(cell.capability for cell in found.cells))
    cells = {(cell.backend, cell.capability): cell for cell in found.cells}
    rows = [
        [
            capability.value if capability.derived_from is None else f"{capability.value} *",
            *(_state(cells[backend, capability]) for backend in backends),
        ]
        for capability in capabilities
    ]
    page.table(
        ["capability", *backends],
        rows,
        styles={"declared": "green", "probed": "green", "verified": "bold green", "-": "dim"},
    )
    page.line(
        "* computed by the core from another capability; `vsr matrix --why` gives limits and reasons", style="dim"
    )


def _state(cell: MatrixCell) -> str:
    return "-" if cell.state == "refused" else cell.state


def _show_reasons(found: CapabilityMatrix) -> None:
    page = Page()
    page.table(
        ["backend", "capability", "state", "families", "limits, features, or why not"],
        [
            (
                cell.backend,
                cell.capability.value,
                cell.state,
                ", ".join(cell.families) or "-",
                "; ".join(_facts(cell)) or "-",
            )
            for cell in found.cells
        ],
        styles={"refused": "dim", "declared": "green", "probed": "green", "verified": "bold green"},
    )


def _facts(cell: MatrixCell) -> Iterator[str]:
    from ..contract import Refused, Supported

    if isinstance(cell.verdict, Refused):
        yield cell.verdict.reason
        return
    if cell.derived_from is not None:
        yield f"computed from {cell.derived_from}"
    if cell.verified:
        yield f"verified with {', '.join(cell.verified)}"
    yield from limits_text(cell.verdict.limits)
    able = [item.feature.value for item in cell.features if isinstance(item.verdict, Supported)]
    if able:
        yield f"with {', '.join(able)}"
    for item in cell.features:
        if isinstance(item.verdict, Refused) and item.verdict.code != "undeclared":
            yield f"no {item.feature}: {item.verdict.reason}"


def limits_text(limits: Limits) -> Iterable[str]:
    """The bounds of a supported cell, one phrase each."""
    if limits.max_tokens is not None:
        yield f"at most {limits.max_tokens} tokens"
    if limits.max_items is not None:
        yield f"at most {limits.max_items} items"
    if limits.dimensions:
        yield f"dimensions {', '.join(map(str, limits.dimensions))}"
    if limits.layers:
        yield f"layers {', '.join(map(str, limits.layers))}"
    if limits.note:
        yield limits.note
