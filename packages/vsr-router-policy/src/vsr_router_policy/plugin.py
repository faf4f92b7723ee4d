"""What vsr-router-policy registers with vsr: no policy yet; each will be listed here as it arrives."""

from __future__ import annotations

from vsr_core.contract import PolicyDescriptor, hookimpl

__all__ = ["vsr_routing_policies"]


@hookimpl
def vsr_routing_policies() -> list[PolicyDescriptor]:
    """The routing policies of this version, of which there are none."""
    return []
