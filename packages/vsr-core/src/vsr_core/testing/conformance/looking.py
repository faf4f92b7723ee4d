"""A look at a plugin from a process of its own: what importing and declaring load, and whether they use the network.

Run as a script, by its path, so that nothing of the kit is imported before the plugin is. The task comes as JSON on the
standard input, the answer goes as JSON to the last line of the standard output.
"""

from __future__ import annotations

import importlib
import importlib.abc
import json
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["main"]

_NETWORK = frozenset({"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"})


class _Missing(importlib.abc.MetaPathFinder):
    """Makes modules as good as not installed."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def main() -> None:
    """Do the task and print what was found."""
    task = json.load(sys.stdin)
    sys.path[:] = task["path"]
    used: list[str] = []
    for name in task["known"]:
        importlib.import_module(name)
    if "descriptor" in task:
        _warm()
    before = set(sys.modules)
    sys.addaudithook(lambda event, _: used.append(event) if event in _NETWORK else None)
    adapter = _declare(task) if "descriptor" in task else None
    if "module" in task:
        importlib.import_module(task["module"])
    found: dict[str, Any] = {"imported": sorted(set(sys.modules) - before), "network": list(used)}
    if adapter is not None and task["frameworks"]:
        sys.meta_path.insert(0, _Missing(task["frameworks"]))
        found["probe"] = _probe(adapter)
    print(f"\n{json.dumps(found)}")  # noqa: T201 - what a script answers


def _warm() -> None:
    """Let the core import what it needs to check anybody's options."""
    from vsr_core.contract import BackendDescriptor
    from vsr_core.plugins.options import validate_options

    fields = {"name": "n", "contract": "1.0", "factory": "m:f"}
    validate_options(BackendDescriptor, fields, where="warm")


def _declare(task: Mapping[str, Any]) -> Any:
    from vsr_core.contract import BackendContext, BackendDescriptor
    from vsr_core.plugins.adapting import AdapterBuild, InstanceSettings, ask_capabilities
    from vsr_core.wire import from_json

    descriptor = from_json(BackendDescriptor, task["descriptor"])
    settings = InstanceSettings(name=descriptor.name, adapter=descriptor.name, options=task["options"])
    adapter = AdapterBuild(descriptor, settings, BackendContext(name=descriptor.name))()
    ask_capabilities(adapter)
    return adapter


def _probe(adapter: Any) -> dict[str, Any]:
    from vsr_core.plugins.adapting import ask_runtime

    try:
        answer = ask_runtime(adapter)
    except BaseException as error:  # noqa: BLE001 - that it raises is what is to be found out
        return {"raised": f"{type(error).__name__}: {error}"}
    return {"usable": answer.usable, "reason": answer.reason}


if __name__ == "__main__":
    main()
