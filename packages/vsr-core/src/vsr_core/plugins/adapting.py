"""Making a backend's adapter from its descriptor: the only place where a plugin's factory is imported and called."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..contract import (
    BackendAdapter,
    BackendContext,
    BackendDescriptor,
    BatchingHints,
    CapabilitySet,
    Preference,
    RuntimeInfo,
)
from ..errors import ConfigError
from ..wire import from_json, to_json

__all__ = ["AdapterBuild", "InstanceSettings", "ask_capabilities", "ask_runtime", "referenced"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSettings:
    """A backend instance as configured.

    :param name: the instance's name, which is its namespace.
    :param adapter: the name of the backend on offer that it is an instance of.
    :param device: the device policy of models loaded on it; ``precision`` likewise.
    :param threads: compute threads, or None for the process's share.
    :param max_adapters: how many adapters may be loaded on one base; beyond them the least recently used one goes.
    :param options: what is checked against the backend's own options model when the instance is first used.
    """

    name: str
    adapter: str
    device: Preference = field(default_factory=Preference)
    precision: Preference = field(default_factory=Preference)
    threads: int | None = None
    batching: BatchingHints = field(default_factory=BatchingHints)
    max_adapters: int = 64
    options: Mapping[str, object] = field(default_factory=dict)


class AdapterBuild:
    """The making of one adapter, for an isolated call.

    ``secrets`` holds the secret options from the moment they are known, so that whoever reports a failure can mask
    them.
    """

    def __init__(self, descriptor: BackendDescriptor, settings: InstanceSettings, context: BackendContext) -> None:
        self.secrets: tuple[str, ...] = ()
        self._descriptor = descriptor
        self._settings = settings
        self._context = context

    def __call__(self) -> BackendAdapter:
        """Check the options, import the factory, call it and check what it gave.

        :raises ConfigError: the options are wrong.
        :raises Exception: whatever the plugin's code raises.
        """
        context = replace(self._context, options=self._options())
        adapter = referenced(self._descriptor.factory)(context)
        if not issubclass(type(adapter), BackendAdapter):
            raise TypeError(f"{self._descriptor.factory} gave a {type(adapter).__name__}, not a BackendAdapter")
        namespace = getattr(adapter, "namespace", None)
        if namespace != self._settings.name:
            raise ValueError(f"the adapter's namespace is {namespace!r}, not the instance's name")
        return adapter  # type: ignore[no-any-return]  # checked by type(), which no object can lie about

    def _options(self) -> object:
        where, options = f"backends.{self._settings.name}", dict(self._settings.options)
        if self._descriptor.options is None:
            problems = [f"{where}: {self._descriptor.name!r} takes no option {name!r}" for name in sorted(options)]
            if problems:
                raise ConfigError("\n".join(problems), problems=problems)
            return None
        from .options import secrets_in, validate_options  # pydantic is imported only where there are options

        model = referenced(self._descriptor.options)
        self.secrets = tuple(secrets_in(model, options))
        return validate_options(model, options, where=where)


def ask_capabilities(adapter: BackendAdapter) -> CapabilitySet:
    """What an adapter declares, copied so that it cannot change."""
    return _copied(CapabilitySet, adapter.capabilities(), "capabilities()")


def ask_runtime(adapter: BackendAdapter) -> RuntimeInfo:
    """What an adapter finds on this host, copied likewise."""
    return _copied(RuntimeInfo, adapter.probe(), "probe()")


def _copied(kind: type[T], answer: object, method: str) -> T:
    if not isinstance(answer, kind):
        raise TypeError(f"{method} gave a {type(answer).__name__}, not a {kind.__name__}")
    return from_json(kind, to_json(answer))


def referenced(reference: str) -> Any:
    """What ``"module:attribute"`` names, imported.

    :raises Exception: whatever the plugin's code raises.
    """
    module, _, attribute = reference.partition(":")
    return functools.reduce(getattr, attribute.split("."), importlib.import_module(module))
