"""What an operator writes, read and checked: schema, loading, environment references, checking."""

from __future__ import annotations

from .check import check
from .configuration import Configuration
from .export import json_schema
from .loading import load_config
from .locate import CONFIG_VARIABLE, DEFAULT_NAME, find_config
from .origin import KeyPath, Origin, Problem
from .report import CheckReport
from .roles import RoleTarget
from .settings import (
    LedgerSettings,
    LimitSettings,
    PolicySettings,
    RoutingSettings,
    ServerSettings,
    SignalSettings,
    TenantSettings,
)

__all__ = [
    "CONFIG_VARIABLE",
    "DEFAULT_NAME",
    "CheckReport",
    "Configuration",
    "KeyPath",
    "LedgerSettings",
    "LimitSettings",
    "Origin",
    "PolicySettings",
    "Problem",
    "RoleTarget",
    "RoutingSettings",
    "ServerSettings",
    "SignalSettings",
    "TenantSettings",
    "check",
    "find_config",
    "json_schema",
    "load_config",
]
