"""The state of a runtime in one shape, for the command line, the server and diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ..contract import CONTRACT_VERSION, BackendId, ModelInfo, RuntimeInfo
from ..errors import VsrError
from ..plugins import BackendInstances, PluginHost
from ..taxonomy import Kind

__all__ = ["BackendStatus", "RoleStatus", "RuntimeStatus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendStatus:
    """One backend instance; ``runtime`` is None until somebody looked at this host, ``error`` says why it is broken."""

    name: str
    adapter: str | None = None
    plugin: str | None = None
    runtime: RuntimeInfo | None = None
    error: str | None = None

    @classmethod
    def of(cls, name: str, instances: BackendInstances, host: PluginHost) -> Self:
        """The status of an instance; looks at nothing that was not looked at before."""
        try:
            descriptor = instances.descriptor(name)
            instances.declared(name)
        except VsrError as error:
            return cls(name=name, error=error.message)
        owner = host.backends.get(descriptor.name)
        return cls(
            name=name,
            adapter=descriptor.name,
            plugin=owner.plugin if owner is not None else None,
            runtime=instances.probed(name),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleStatus:
    """A role and its group."""

    kind: Kind
    name: str
    group: tuple[BackendId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeStatus:
    """A whole runtime. ``schema`` is the version of this shape; ``started_at`` is Unix time."""

    schema: int = 1
    contract: str = ".".join(map(str, CONTRACT_VERSION))
    config: str | None = None
    pid: int
    started_at: float
    threads: int
    backends: tuple[BackendStatus, ...] = ()
    roles: tuple[RoleStatus, ...] = ()
    models: tuple[ModelInfo, ...] = ()
