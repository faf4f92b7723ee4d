"""What an application holds: the synchronous and the asynchronous facade over one core."""

from __future__ import annotations

from .awaiting import AsyncRuntime
from .blocking import Runtime
from .core import cache_folder
from .status import BackendStatus, RoleStatus, RuntimeStatus

__all__ = ["AsyncRuntime", "BackendStatus", "RoleStatus", "Runtime", "RuntimeStatus", "cache_folder"]
