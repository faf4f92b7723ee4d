"""Plugins: discovery, isolation and report; named backend instances; the matrix of what is installed."""

from __future__ import annotations

from .adapting import InstanceSettings
from .entry_points import EntryPointLike
from .exporting import run_exporter
from .hookspecs import HookSpecs
from .host import PluginHost
from .instances import BackendInstances
from .matrix import CapabilityMatrix, CellState, FeatureCell, MatrixCell, verdict_on
from .records import Contribution, PluginFailure, PluginRecord, PluginReport, PluginSource, Stage, Status
from .settings import PluginSettings

__all__ = [
    "BackendInstances",
    "CapabilityMatrix",
    "CellState",
    "Contribution",
    "EntryPointLike",
    "FeatureCell",
    "HookSpecs",
    "InstanceSettings",
    "MatrixCell",
    "PluginFailure",
    "PluginHost",
    "PluginRecord",
    "PluginReport",
    "PluginSettings",
    "PluginSource",
    "Stage",
    "Status",
    "run_exporter",
    "verdict_on",
]
