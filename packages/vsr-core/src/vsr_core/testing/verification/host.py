"""Every cell that the backends of a host claim, and everything they refuse."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...config import load_config
from ...errors import VsrError
from ...plugins import BackendFacts, BackendInstances, InstanceSettings, PluginHost, Receipt
from ...processors import usable_processors
from ..conformance.workbench import Workbench
from .claims import BackendTrials
from .facts import backend_facts, receipt_of
from .materials import Materials
from .trials import Progress, Trial, run_trials

__all__ = ["verify_host"]


def verify_host(
    source: Path | Mapping[str, Any] | None, *, progress: Progress, environ: Mapping[str, str] | None = None
) -> Receipt:
    """Try every cell of every backend instance on tiny seeded checkpoints, and provoke every refusal.

    :param source: the configuration, of which the backends and the choice of plugins count.
    :raises ConfigError: it is wrong.
    """
    environ = os.environ if environ is None else environ
    config = load_config(source, environ=environ)
    with tempfile.TemporaryDirectory(prefix="vsr-verify-") as name:
        root = Path(name)
        host = PluginHost.discover(config.plugins, environ=environ)
        instances = BackendInstances(host, config.instances, cache_dir=root / "cache", threads=usable_processors())
        try:
            return _verify(host, instances, root, progress)
        finally:
            asyncio.run(instances.close())
            host.close()


def _verify(host: PluginHost, instances: BackendInstances, root: Path, progress: Progress) -> Receipt:
    materials = Materials(root, host)
    facts: dict[str, BackendFacts] = {}
    trials: list[Trial] = []
    for number, name in enumerate(names := instances.names()):
        progress(f"probing {name}", number, len(names))
        settings = instances.settings(name)
        facts[name] = backend_facts(host, settings.adapter, instances.probe(name))
        trials += _trials(name, instances, materials, root)
    outcomes = run_trials(trials, progress=progress)
    return receipt_of(host, facts, checkpoints=outcomes.checkpoints, cells=outcomes.cells)


def _trials(name: str, instances: BackendInstances, materials: Materials, root: Path) -> Iterator[Trial]:
    """The trials of one instance; none of one that cannot even say what it does, which its facts tell."""
    try:
        instances.declared(name)
    except VsrError:
        return
    settings = instances.settings(name)
    bench = partial(_bench, instances.host, settings, root / "cache")
    yield from BackendTrials(name, instances, materials, bench=bench)


def _bench(host: PluginHost, settings: InstanceSettings, cache: Path) -> Workbench:
    """The backend in a host of its own, configured as the instance is."""
    module, _, attribute = host.backends[settings.adapter].source.entry_point.partition(":")
    plugin = importlib.import_module(module)
    return Workbench(
        getattr(plugin, attribute) if attribute else plugin,
        settings.name,
        settings=_written(settings),
        cache=cache,
        threads=settings.threads or usable_processors(),
    )


def _written(settings: InstanceSettings) -> dict[str, Any]:
    """An instance as a configuration has it."""
    written: dict[str, Any] = {
        "adapter": settings.adapter,
        "device": str(settings.device),
        "precision": str(settings.precision),
        "batching": dataclasses.asdict(settings.batching),
        **settings.options,
    }
    return written if settings.threads is None else written | {"threads": settings.threads}
