"""Plugins: discovery, isolation and report; named backend instances; the matrix of what is installed."""

from __future__ import annotations

from .adapting import InstanceSettings
from .entry_points import EntryPointLike
from .exporting import run_writer
from .hookspecs import HookSpecs
from .host import PluginHost
from .instances import BackendInstances
from .matrix import UNASKED, CapabilityMatrix, CellState, FeatureCell, MatrixCell, verdict_on
from .receipt import (
    BackendFacts,
    HostFacts,
    OutcomeState,
    Receipt,
    ReceiptCell,
    check_place,
    differences,
    installed_version,
    read_receipt,
    system_name,
)
from .records import Contribution, PluginFailure, PluginRecord, PluginReport, PluginSource, Stage, Status
from .settings import PluginSettings

__all__ = [
    "UNASKED",
    "BackendFacts",
    "BackendInstances",
    "CapabilityMatrix",
    "CellState",
    "Contribution",
    "EntryPointLike",
    "FeatureCell",
    "HookSpecs",
    "HostFacts",
    "InstanceSettings",
    "MatrixCell",
    "OutcomeState",
    "PluginFailure",
    "PluginHost",
    "PluginRecord",
    "PluginReport",
    "PluginSettings",
    "PluginSource",
    "Receipt",
    "ReceiptCell",
    "Stage",
    "Status",
    "check_place",
    "differences",
    "installed_version",
    "read_receipt",
    "run_writer",
    "system_name",
    "verdict_on",
]
