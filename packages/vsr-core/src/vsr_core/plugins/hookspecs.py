"""The hooks a plugin may implement; every one is optional, a plugin implements at least one.

A plugin is asked once, while plugins are discovered, before anything else happens: the five hooks that return
descriptors must be quick, import no framework and touch no network. They may return an empty list. A new hook or a
new parameter with a default may be added within a major version of the contract; none is ever removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import pluggy

from ..contract import (
    AttemptRecord,
    BackendDescriptor,
    CatalogEntry,
    FamilyDescriptor,
    PolicyDescriptor,
    RouterDescriptor,
)

__all__ = ["PROJECT", "HookSpecs"]

PROJECT: Final = "vsr"
"""The project name by which pluggy tells our markers from others'."""

_hookspec = pluggy.HookspecMarker(PROJECT)


class HookSpecs(Protocol):
    """Every hook with its signature; an implementation is a function of this name marked with ``hookimpl``."""

    @_hookspec
    def vsr_backends(self) -> Sequence[BackendDescriptor]:
        """Return the backends on offer. Their factories are not imported before an instance is first used."""
        ...

    @_hookspec
    def vsr_routing_policies(self) -> Sequence[PolicyDescriptor]:
        """Return the routing policies on offer. A policy acts only where a configuration names it."""
        ...

    @_hookspec
    def vsr_routers(self) -> Sequence[RouterDescriptor]:
        """Return the routers on offer. A router acts only where a configuration names it."""
        ...

    @_hookspec
    def vsr_model_families(self) -> Sequence[FamilyDescriptor]:
        """Return the model families this plugin adds to those the core knows."""
        ...

    @_hookspec
    def vsr_catalog(self) -> Sequence[CatalogEntry]:
        """Return models that come with the plugin; they are listed as contributed by it."""
        ...

    @_hookspec
    def vsr_on_attempt(self, record: AttemptRecord) -> None:
        """Take note of one attempt.

        Runs after the attempt has ended, on a thread of the plugin's own and never on the caller's; records arrive in
        order. What it raises is listed and harms nobody; an observer too slow to follow loses records.

        :param record: what happened; it holds no texts and no secrets.
        """
        ...
