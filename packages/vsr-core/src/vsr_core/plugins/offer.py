"""What one plugin offers: its hooks are called, and what they return is checked and copied into plain values."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pluggy

from ..contract import (
    AttemptRecord,
    BackendDescriptor,
    CatalogEntry,
    FamilyDescriptor,
    PolicyDescriptor,
    RouterDescriptor,
    check_backend_name,
    check_name,
)
from ..errors import ConfigError, InvalidInputError
from ..wire import from_json, to_json
from .compatibility import parse_contract
from .hookspecs import PROJECT, HookSpecs

__all__ = ["Offer", "Registered", "describe", "register"]

D = TypeVar("D", BackendDescriptor, PolicyDescriptor, RouterDescriptor, FamilyDescriptor, CatalogEntry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A plugin whose hooks are known and match their specifications."""

    manager: pluggy.PluginManager
    hooks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Everything one plugin contributes, each kind sorted by name."""

    hooks: tuple[str, ...] = ()
    backends: tuple[BackendDescriptor, ...] = ()
    policies: tuple[PolicyDescriptor, ...] = ()
    routers: tuple[RouterDescriptor, ...] = ()
    families: tuple[FamilyDescriptor, ...] = ()
    catalog: tuple[CatalogEntry, ...] = ()
    observe: Callable[[AttemptRecord], None] | None = None

    @property
    def contracts(self) -> tuple[tuple[int, int], ...]:
        """The contract versions its descriptors need, rising."""
        with_contract: list[BackendDescriptor | PolicyDescriptor | RouterDescriptor | FamilyDescriptor] = [
            *self.backends,
            *self.policies,
            *self.routers,
            *self.families,
        ]
        return tuple(sorted({parse_contract(descriptor.contract) for descriptor in with_contract}))


def register(plugin: object, name: str) -> Registered:
    """Register a plugin with a pluggy manager of its own, so that nothing it does there can hold up another.

    :raises ConfigError: it implements no hook, or one that does not exist.
    """
    if plugin is None:
        raise ConfigError("the entry point names None, not a module or an object")
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    manager.register(plugin, name)
    callers = manager.get_hookcallers(plugin) or []
    known = [caller.name for caller in callers if caller.has_spec()]
    for caller in callers:
        if not caller.has_spec() and not all(impl.optionalhook for impl in caller.get_hookimpls()):
            raise ConfigError(f"there is no hook {caller.name!r}{_nearest_hook(caller.name)}")
    if not known:
        raise ConfigError("it implements no hook: mark its functions with vsr_core.contract.hookimpl")
    return Registered(manager=manager, hooks=tuple(sorted(known)))


def describe(registered: Registered) -> Offer:
    """Ask a plugin what it offers.

    :raises ConfigError: something it returned is not what its hook is to return.
    """
    hook = registered.manager.hook
    backends = _collect(BackendDescriptor, "vsr_backends", hook.vsr_backends())
    for backend in backends:
        check_backend_name(backend.name)
    return Offer(
        hooks=registered.hooks,
        backends=backends,
        policies=_collect(PolicyDescriptor, "vsr_routing_policies", hook.vsr_routing_policies()),
        routers=_collect(RouterDescriptor, "vsr_routers", hook.vsr_routers()),
        families=_collect(FamilyDescriptor, "vsr_model_families", hook.vsr_model_families()),
        catalog=_collect(CatalogEntry, "vsr_catalog", hook.vsr_catalog()),
        observe=_observer(registered),
    )


def _observer(registered: Registered) -> Callable[[AttemptRecord], None] | None:
    if "vsr_on_attempt" not in registered.hooks:
        return None
    call = registered.manager.hook.vsr_on_attempt

    def observe(record: AttemptRecord) -> None:
        call(record=record)

    return observe


def _collect(kind: type[D], hook: str, answers: Sequence[object]) -> tuple[D, ...]:
    """The descriptors a hook returned, as fresh values of exactly their type, so that none can act up later."""
    found: dict[str, D] = {}
    for answer in answers:
        if not isinstance(answer, list | tuple):
            raise ConfigError(f"{hook} returned a {type(answer).__name__}, not a list of {kind.__name__}")
        for item in answer:
            descriptor = _copy(kind, hook, item)
            if descriptor.name in found:
                raise ConfigError(f"{hook} names {descriptor.name!r} twice")
            found[descriptor.name] = descriptor
    return tuple(descriptor for _, descriptor in sorted(found.items()))


def _copy(kind: type[D], hook: str, item: object) -> D:
    if not isinstance(item, kind):
        raise ConfigError(f"{hook} returned a list with a {type(item).__name__}, not of {kind.__name__} alone")
    try:
        descriptor = from_json(kind, to_json(item))
    except InvalidInputError as error:
        raise ConfigError(f"{hook} returned a malformed {kind.__name__}: {error.message}") from None
    check_name(descriptor.name, "name")
    for reference in ("factory", "options", "exporter", "merger"):
        _check_reference(hook, descriptor.name, getattr(descriptor, reference, None))
    if not isinstance(descriptor, CatalogEntry):
        parse_contract(descriptor.contract)
    return descriptor


def _check_reference(hook: str, name: str, reference: str | None) -> None:
    if reference is None:
        return
    module, colon, attribute = reference.partition(":")
    parts = [*module.split("."), *attribute.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise ConfigError(f"{hook}: {name!r} names {reference!r}, which is not of the form 'module:attribute'")


def _nearest_hook(name: str) -> str:
    hooks = [hook for hook in dir(HookSpecs) if hook.startswith(f"{PROJECT}_")]
    nearest = difflib.get_close_matches(name, hooks, n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""
