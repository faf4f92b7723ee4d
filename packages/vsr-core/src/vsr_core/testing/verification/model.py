"""One configured model, for everything it is for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...config import load_config
from ...contract import CapabilitySet, ModelInfo
from ...plugins import BackendInstances, PluginHost, Receipt, ReceiptCell
from ...processors import usable_processors
from ...runtime import Runtime
from ...taxonomy import Artifact
from ..conformance.folders import HEADS
from .checks import Subject, examine
from .facts import backend_facts, receipt_of
from .trials import Findings, NotRunError, Progress, Trial, run_trials

__all__ = ["verify_model"]


def verify_model(
    source: Path | Mapping[str, Any] | None,
    model: str,
    *,
    progress: Progress,
    environ: Mapping[str, str] | None = None,
) -> Receipt:
    """Load a model of a configuration and try it for each of its capabilities.

    :raises VsrError: there is no such model, or it cannot be loaded.
    """
    environ = os.environ if environ is None else environ
    config = load_config(source, environ=environ)
    host = PluginHost.discover(config.plugins, environ=environ)
    try:
        with Runtime(source, host=host, environ=environ) as runtime:
            progress(f"loading {model}", 0, 1)
            info = runtime.load(model)
            name = info.backend_id.backend
            instances = BackendInstances(host, config.instances, threads=usable_processors())
            outcomes = run_trials(_trials(runtime, model, info, instances.declared(name)), progress=progress)
            facts = {name: backend_facts(host, instances.settings(name).adapter, instances.probe(name))}
            return receipt_of(host, facts, checkpoints=outcomes.checkpoints, cells=outcomes.cells)
    finally:
        host.close()


def _trials(runtime: Runtime, model: str, info: ModelInfo, rules: CapabilitySet) -> Iterator[Trial]:
    for capability in info.capabilities:
        subject = Subject(runtime=runtime, model=str(info.backend_id), capability=capability)
        yield Trial(
            name=f"{model}: {capability}",
            cell=ReceiptCell(
                backend=info.backend_id.backend,
                capability=capability,
                claim="supported",
                state="not_run",
                family=info.family,
                artifact=info.artifact or Artifact.REMOTE,
            ),
            run=partial(_examine, subject, rules, str(info.backend_id)),
        )


def _examine(subject: Subject, rules: CapabilitySet, checkpoint: str) -> Findings:
    if subject.capability not in HEADS:
        raise NotRunError(f"no call of this version asks for {subject.capability}")
    return replace(examine(subject, rules), checkpoint=checkpoint)
