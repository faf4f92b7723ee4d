"""A configuration that has been read, validated and resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..contract import BackendId, CatalogEntry, Price, RoleTable
from ..plugins import InstanceSettings, PluginSettings
from ..taxonomy import Kind
from .origin import Origin
from .roles import RoleTarget
from .settings import (
    LedgerSettings,
    PolicySettings,
    RoutingSettings,
    ServerSettings,
    SignalSettings,
    TenantSettings,
)

__all__ = ["Configuration"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything an operator has said, in the terms of the contract.

    :param path: the file it was read from, absolute; relative paths in it start at that file's folder.
    :param instances: the backend instances it names; those nobody names have defaults.
    :param role_targets: what each role names, before roles that name roles are resolved.
    :param role_policies: the policies of single roles, by kind and role.
    :param origin: where each key was written, for messages.
    """

    path: Path | None = None
    catalog: Mapping[str, CatalogEntry] = field(default_factory=dict)
    instances: Mapping[str, InstanceSettings] = field(default_factory=dict)
    roles: RoleTable = field(default_factory=lambda: RoleTable({}), compare=False)
    role_targets: tuple[RoleTarget, ...] = ()
    role_policies: Mapping[tuple[Kind, str], tuple[PolicySettings, ...]] = field(default_factory=dict)
    routing: RoutingSettings = field(default_factory=RoutingSettings)
    signals: Mapping[str, SignalSettings] = field(default_factory=dict)
    prices: Mapping[BackendId, Price] = field(default_factory=dict)
    tenants: Mapping[str, TenantSettings] = field(default_factory=dict)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    plugins: PluginSettings = field(default_factory=PluginSettings)
    origin: Origin = field(default_factory=lambda: Origin(label="config"), compare=False, repr=False)

    @property
    def folder(self) -> Path | None:
        """Where relative paths in the configuration start; None for one that was no file."""
        return self.path.parent if self.path is not None else None
