"""Asking for a look at a plugin from another process, and reading what came back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...contract import BackendDescriptor
from ...wire import to_json
from .claims import demand

__all__ = ["Look", "look_at_backend", "look_at_module"]

_SCRIPT = Path(__file__).with_name("looking.py")
_TIMEOUT = 120.0
_CONTRACT = ("vsr_core.contract", "vsr_core.taxonomy", "vsr_core.errors")
_ROOMS = (*_CONTRACT, "vsr_core.local", "vsr_core.plugins.options", "vsr_core.plugins.adapting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen.

    :param imported: the modules that were loaded beyond those the core loads itself.
    :param network: the uses of the network, as the interpreter names them.
    :param probe: what a probe without the frameworks came to; None where none were named.
    """

    imported: tuple[str, ...]
    network: tuple[str, ...]
    probe: Mapping[str, Any] | None = None

    def heavy(self, *, own: Iterable[str]) -> list[str]:
        """The packages loaded that are neither the standard library's nor ``own``, sorted."""
        light = {*own, *sys.stdlib_module_names}
        return sorted({name for name in map(_package, self.imported) if name not in light})


def look_at_module(module: str) -> Look:
    """Import a plugin's module as discovery does."""
    return _look({"module": module, "known": _CONTRACT})


def look_at_backend(
    descriptor: BackendDescriptor, *, options: Mapping[str, object], frameworks: Iterable[str] = ()
) -> Look:
    """Make a backend's adapter and let it declare; then probe it as if ``frameworks`` were not installed."""
    return _look(
        {
            "descriptor": to_json(descriptor),
            "options": dict(options),
            "frameworks": list(frameworks),
            "known": _ROOMS,
        }
    )


def _package(module: str) -> str:
    """The package a module belongs to; of the core, the room."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "vsr_core" else parts[0]


def _look(task: Mapping[str, Any]) -> Look:
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(_SCRIPT)],
        input=json.dumps({**task, "path": sys.path}),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    demand(done.returncode == 0, f"in a process of its own it fails: {done.stderr.strip()[-2000:]}")
    found = json.loads(done.stdout.strip().rpartition("\n")[2])
    return Look(imported=tuple(found["imported"]), network=tuple(found["network"]), probe=found.get("probe"))
