"""What every plugin must be: found, light, well formed, and of use in a host of its own."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

import pytest

from ...contract import CONTRACT_VERSION, ENTRY_POINT_GROUP, RuntimeInfo, check_backend_name, check_name
from ...errors import ConfigError, VsrError
from ...plugins import BackendInstances, HookSpecs, InstanceSettings, PluginHost, PluginRecord
from ...plugins.adapting import referenced
from ...plugins.compatibility import parse_contract
from ..fixtures import empty_host
from .claims import demand
from .isolation import Look, look_at_module
from .standard import Conformance

__all__ = ["PluginConformance"]

_DESCRIBING = ("vsr_backends", "vsr_routing_policies", "vsr_routers", "vsr_model_families", "vsr_catalog")
_LOOKS = pytest.StashKey[dict[str, Look]]()
_UNKNOWN = "no_such_option"


class PluginConformance(Conformance):
    """Subclass it and name the plugin's module.

    :cvar module: what the entry point names, such as ``"vsr_letters.plugin"``.
    :cvar light: packages it may import beside the standard library, its own, and ``vsr_core``'s contract.
    """

    module: ClassVar[str]
    light: ClassVar[Sequence[str]] = ()

    @pytest.fixture
    def plugin(self) -> Any:
        """The module, imported."""
        return importlib.import_module(self.module)

    @pytest.fixture
    def host(self, plugin: Any) -> PluginHost:
        """A host with this plugin alone; skips the test where the plugin is refused, which other tests show."""
        if reasons := [*self._refusals(plugin)]:
            pytest.skip(f"the plugin is refused, for reasons other tests have: {reasons[0]}")
        host = empty_host()
        host.register(plugin, name="conformance")
        return host

    @pytest.fixture
    def look(self, request: pytest.FixtureRequest) -> Look:
        """The module as a fresh process sees it, once for all tests of the class."""
        looks = request.session.stash.setdefault(_LOOKS, {})
        if self.module not in looks:
            looks[self.module] = look_at_module(self.module)
        return looks[self.module]

    def test_an_entry_point_names_the_module(self) -> None:
        """In the group that is looked through, under a legal name, once."""
        found = [*_points(self.module)]
        demand(found, f"no installed distribution has an entry point of {ENTRY_POINT_GROUP!r} that names {self.module}")
        demand(len(set(found)) == 1, f"{self.module} is named by several entry points: {found}")
        check_name(found[0].name, "plugin name")

    def test_the_module_is_light(self, look: Look) -> None:
        """Every listing imports it: the contract and the standard library are enough."""
        heavy = look.heavy(own=(self.module.partition(".")[0], *self.light))
        demand(not heavy, f"{self.module} imports {', '.join(heavy)}: name what needs it by 'module:attribute'")

    def test_importing_it_uses_no_network(self, look: Look) -> None:
        """Nor does anything else that happens at import."""
        demand(not look.network, f"importing {self.module} uses the network: {', '.join(look.network)}")

    def test_its_hooks_are_known(self, plugin: Any) -> None:
        """A misspelt hook would never be called."""
        hooks = [*_hooks(plugin)]
        demand(hooks, f"{self.module} implements no hook: mark its functions with vsr_core.contract.hookimpl")
        unknown = [hook for hook in hooks if not hasattr(HookSpecs, hook)]
        demand(not unknown, f"there are no hooks called {', '.join(unknown)}")

    def test_its_descriptors_are_valid(self, plugin: Any) -> None:
        """Each hook returns a list of what it is specified to return, the same each time."""
        for hook in _implemented(plugin):
            answer = getattr(plugin, hook)()
            demand(isinstance(answer, list | tuple), f"{hook} returns a {type(answer).__name__}, not a list")
            demand(list(answer) == list(getattr(plugin, hook)()), f"{hook} returns something else each time")
        problems = [reason for reason in self._refusals(plugin) if "malformed" in reason or "returned" in reason]
        demand(not problems, "; ".join(problems))

    def test_its_names_are_legal(self, plugin: Any) -> None:
        """Of backends they are also namespaces."""
        for hook, descriptor in _descriptors(plugin):
            (check_backend_name if hook == "vsr_backends" else check_name)(descriptor.name)

    def test_no_name_is_registered_twice(self, plugin: Any) -> None:
        """Neither by this plugin nor beside what the core has."""
        seen: set[tuple[str, str]] = set()
        for hook, descriptor in _descriptors(plugin):
            demand((hook, descriptor.name) not in seen, f"{hook} names {descriptor.name!r} twice")
            seen.add((hook, descriptor.name))
        core = empty_host().families
        taken = [name for hook, name in seen if hook == "vsr_model_families" and name in core]
        demand(not taken, f"the core has these families already: {', '.join(taken)}")

    def test_the_contract_version_is_one_the_core_has(self, plugin: Any) -> None:
        """Of this major version, and not newer."""
        for _, descriptor in _descriptors(plugin):
            if (text := getattr(descriptor, "contract", None)) is not None:
                major, minor = parse_contract(text)
                accepted = major == CONTRACT_VERSION[0] and minor <= CONTRACT_VERSION[1]
                demand(accepted, f"{descriptor.name!r} needs contract {text}, the core has {CONTRACT_VERSION}")

    def test_what_it_names_can_be_imported(self, plugin: Any) -> None:
        """Factories, options models, exporters and mergers."""
        for _, descriptor in _descriptors(plugin):
            for field in ("factory", "options", "exporter", "merger"):
                reference = getattr(descriptor, field, None)
                demand(reference is None or callable(referenced(reference)), f"{reference} cannot be called")

    def test_options_nobody_knows_are_refused(self, host: PluginHost) -> None:
        """By a ``ConfigError`` that names the option, for backends with options and without."""
        for name in host.backends:
            settings = InstanceSettings(name=name, adapter=name, options={_UNKNOWN: 1})
            with pytest.raises(ConfigError) as caught:
                BackendInstances(host, {name: settings}).adapter(name)
            demand(_UNKNOWN in caught.value.message, f"{name}: the error does not name the option: {caught.value}")

    def test_it_works_in_a_host_of_its_own(self, host: PluginHost) -> None:
        """It is active, and each backend makes its adapter, declares, and answers a probe."""
        (record,) = host.report().plugins
        demand(record.status == "active" and not record.conflicts, f"it is {record.status}: {_why(record)}")
        instances = BackendInstances(host)
        for name in instances.names():
            demand(instances.adapter(name).namespace == name, f"the adapter of {name!r} has another namespace")
            instances.declared(name)
            demand(isinstance(instances.probe(name), RuntimeInfo), f"{name}: the probe gives no RuntimeInfo")
        demand(not host.report().plugins[0].failures, f"failures are listed: {host.report().plugins[0].failures}")

    def _refusals(self, plugin: Any) -> Iterator[str]:
        """Why a host would not take the plugin."""
        try:
            empty_host().register(plugin, name="conformance")
        except VsrError as error:
            yield error.message


def _why(record: PluginRecord) -> str:
    return record.reason or "; ".join(record.conflicts)


def _points(module: str) -> Iterator[EntryPoint]:
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.value.partition(":")[0] == module:
            yield point


def _hooks(plugin: Any) -> Iterator[str]:
    for name in dir(plugin):
        if hasattr(getattr(plugin, name, None), "vsr_impl"):
            yield name


def _implemented(plugin: Any) -> list[str]:
    return [hook for hook in _hooks(plugin) if hook in _DESCRIBING]


def _descriptors(plugin: Any) -> Iterator[tuple[str, Any]]:
    for hook in _implemented(plugin):
        for descriptor in getattr(plugin, hook)():
            yield hook, descriptor
