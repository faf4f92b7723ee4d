"""``vsr status``: the configuration, backends, roles and models of a runtime on one page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ..wire import to_json
from .activity import watching
from .models import table_of
from .options import ConfigOption, JsonOption
from .output import Page, print_json
from .places import hub_folder, own_folder
from .session import open_runtime

if TYPE_CHECKING:
    from ..runtime import BackendStatus, RuntimeStatus

__all__ = ["status"]

_STYLES: Final = {"usable": "green", "broken": "red", "unusable here": "red"}


def status(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show configuration, backends, roles and models."""
    with watching("reading the configuration") as activity, open_runtime(config, activity=activity) as runtime:
        found = runtime.status()
    places = {"cache": str(own_folder(os.environ)), "hub": str(hub_folder(os.environ))}
    if as_json:
        print_json("status", to_json(found) | {"paths": places})
    else:
        _show(found, places)


def _show(found: RuntimeStatus, places: dict[str, str]) -> None:
    page = Page()
    page.pairs(
        [
            ("configuration", found.config or "none; what plugins bring"),
            ("contract", found.contract),
            ("threads", str(found.threads)),
            ("cache", places["cache"]),
            ("downloads", places["hub"]),
        ]
    )
    page.line()
    page.heading("backends")
    if found.backends:
        page.table(
            ["backend", "adapter", "plugin", "state", "remarks"],
            [
                (item.name, item.adapter or "-", item.plugin or "-", _state(item), _remark(item))
                for item in found.backends
            ],
            styles=_STYLES,
        )
    else:
        page.line("none; `vsr plugins` lists what is installed, and why it is not used")
    page.line()
    page.heading("roles")
    if found.roles:
        page.table(
            ["kind", "role", "group"],
            [(role.kind.value, role.name, ", ".join(map(str, role.group))) for role in found.roles],
        )
    else:
        page.line("none; a model is asked for by its name, or is the only one that can do what is asked")
    page.line()
    page.heading("models")
    if found.models:
        table_of(page, found.models)
    else:
        page.line("none; add one to `catalog` in the configuration")


def _state(item: BackendStatus) -> str:
    if item.error is not None:
        return "broken"
    if item.runtime is None:
        return "declared"
    return "usable" if item.runtime.usable else "unusable here"


def _remark(item: BackendStatus) -> str:
    if item.error is not None:
        return item.error
    if item.runtime is None:
        return "-"
    return item.runtime.reason or ", ".join(item.runtime.devices) or "-"
