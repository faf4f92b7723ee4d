"""How a distribution becomes a plugin: an entry point in the group ``vsr_core.plugins`` names a light module whose
functions, marked with :data:`hookimpl`, return lists of the descriptors below.

The module may import ``vsr_core.contract`` and the standard library only; factories and options models are named
by string and imported when they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pluggy

__all__ = [
    "CONTRACT_VERSION",
    "ENTRY_POINT_GROUP",
    "BackendDescriptor",
    "PolicyDescriptor",
    "RouterDescriptor",
    "hookimpl",
]

CONTRACT_VERSION: Final = (1, 0)
"""Major and minor version of this contract. Within a major it only grows."""

ENTRY_POINT_GROUP: Final = "vsr_core.plugins"

hookimpl: Final = pluggy.HookimplMarker("vsr")
"""Marks a function as the implementation of the hook it is named after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendDescriptor:
    """A backend on offer.

    :param name: the adapter's name, and the namespace of its default instance.
    :param contract: the contract version needed, such as ``"1.0"``.
    :param factory: ``"module:attribute"``, a callable taking a ``BackendContext`` and giving a ``BackendAdapter``.
    :param options: ``"module:attribute"`` of the options model (a dataclass or pydantic model), or None.
    :param open_namespace: whether it serves models no catalog names (a provider).
    :param delegating: whether it answers through other backends, whose attempts then count.
    :param configured_only: whether it exists only where a configuration names an instance.
    :param exporter: ``"module:attribute"``, a callable taking an ``ExportRequest`` and giving an ``ExportReport``, or
        None where the backend writes no models.
    :param merger: the same, for a callable that writes a LoRA adapter and its base as one checkpoint.
    """

    name: str
    contract: str
    factory: str
    summary: str = ""
    options: str | None = None
    open_namespace: bool = False
    delegating: bool = False
    configured_only: bool = False
    exporter: str | None = None
    merger: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDescriptor:
    """A routing policy on offer; ``factory`` takes a ``PolicyContext`` and gives the policy."""

    name: str
    contract: str
    factory: str
    summary: str = ""
    options: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterDescriptor:
    """A router on offer; ``factory`` takes a ``PolicyContext`` and gives the router."""

    name: str
    contract: str
    factory: str
    summary: str = ""
    options: str | None = None
