"""``vsr models`` and ``vsr load``: what can be asked for, and what loading it comes to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..wire import to_json
from .activity import watching
from .options import ConfigOption, JsonOption, TimeoutOption
from .output import Page, bytes_text, one_line, print_json, seconds_text
from .session import open_runtime

if TYPE_CHECKING:
    from ..contract import Choice, ModelInfo

__all__ = ["choice_text", "load", "models", "summary", "table_of"]

_LISTED: Final = 8
"""How many labels of a model people are shown."""

_STYLES: Final = {"ready": "green", "failed": "red"}


def models(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List every model that can be asked for."""
    with watching("reading the catalog") as activity, open_runtime(config, activity=activity) as runtime:
        found = runtime.models()
    if as_json:
        print_json("models", {"models": to_json(found)})
        return
    page = Page()
    if not found:
        page.line(
            "no model can be asked for: add one to `catalog` in the configuration; `vsr check` says what is wrong"
        )
        return
    table_of(page, found)


def load(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A role, a model of the catalog, or <backend>:<model>.")
    ],
    *,
    timeout: TimeoutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load a model and say what it came to."""
    with watching(f"loading {model}") as activity, open_runtime(config, activity=activity) as runtime:
        info = runtime.load(model, timeout=timeout)
    if as_json:
        print_json("load", {"model": to_json(info)})
        return
    page = Page()
    page.heading(str(info.backend_id))
    page.pairs(summary(info))


def table_of(page: Page, found: tuple[ModelInfo, ...]) -> None:
    """A table of models, and below it what is wrong with them."""
    page.table(
        ["model", "family", "artifact", "capabilities", "dimensions", "max tokens", "state", "source"],
        [
            (
                str(info.backend_id),
                info.family or "-",
                info.artifact.value if info.artifact is not None else "-",
                ", ".join(item.value for item in info.capabilities) or "-",
                _dimensions(info),
                str(info.max_tokens or "-"),
                info.state,
                info.source or "-",
            )
            for info in found
        ],
        right=("dimensions", "max tokens"),
        styles=_STYLES,
    )
    for info in found:
        if info.state_reason:
            page.line(f"{info.backend_id}: {info.state_reason}")


def summary(info: ModelInfo) -> Iterator[tuple[str, str | None]]:
    """The facts of a loaded model, as names and values; what is not known has no value."""
    yield "state", info.state
    yield "device", choice_text(info.device)
    yield "precision", choice_text(info.dtype)
    yield "provider", choice_text(info.provider)
    yield "stored as", info.stored_dtype
    yield "loaded in", seconds_text(info.load_seconds)
    yield "memory", bytes_text(info.memory_bytes)
    yield "family", info.family
    yield "capabilities", ", ".join(item.value for item in info.capabilities)
    yield "dimensions", _dimensions(info).replace("-", "")
    yield "layers", str(info.native_layers or "")
    yield "max tokens", _tokens(info)
    yield "labels", _labels(info)
    yield "features", ", ".join(item.feature.value for item in info.features if item.supported)
    yield "source", info.source
    yield "revision", info.revision
    yield "content", f"sha256 {info.content_hash[:16]}" if info.content_hash else None


def choice_text(choice: Choice | None) -> str | None:
    """What was asked for, what it came to, and why."""
    if choice is None:
        return None
    came = choice.actual or "not known"
    asked = "" if choice.requested == choice.actual else f" (asked: {choice.requested})"
    return f"{came}{asked}" + (f": {choice.reason}" if choice.reason else "")


def _dimensions(info: ModelInfo) -> str:
    widths = info.dimensions or ((info.native_dimensions,) if info.native_dimensions else ())
    return ", ".join(map(str, widths)) or "-"


def _labels(info: ModelInfo) -> str | None:
    labels = info.labels or ()
    shown = ", ".join(map(one_line, labels[:_LISTED]))
    return f"{shown}, ... {len(labels)} in all" if len(labels) > _LISTED else shown or None


def _tokens(info: ModelInfo) -> str | None:
    if info.max_tokens is None:
        return None
    claimed = info.advertised_max_tokens
    return f"{info.max_tokens}" + (f" (advertised: {claimed})" if claimed not in (None, info.max_tokens) else "")
