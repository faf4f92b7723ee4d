from __future__ import annotations

import sys
import threading

import pytest
from vsr_core.contract import (
    BackendDescriptor,
    CatalogEntry,
    FamilyDescriptor,
    PolicyDescriptor,
    RouterDescriptor,
    hookimpl,
)
from vsr_core.errors import AddressError, PluginConflictError, PluginError, PluginImportError, PluginIncompatibleError
from vsr_core.plugins import PluginFailure, PluginHost, PluginReport, PluginSettings, PluginSource
from vsr_core.wire import from_json, to_json


class Offers:
    """A plugin with one backend."""

    def __init__(self, backend, contract="1.0"):
        self._descriptor = BackendDescriptor(name=backend, contract=contract, factory="planted:Adapter")

    @hookimpl
    def vsr_backends(self):
        return [self._descriptor]


class Everything:
    @hookimpl
    def vsr_backends(self):
        return [BackendDescriptor(name=name, contract="1.0", factory="m:a") for name in ("two", "one")]

    @hookimpl
    def vsr_routing_policies(self):
        return [PolicyDescriptor(name="cost", contract="1.0", factory="m:a")]

    @hookimpl
    def vsr_routers(self):
        return [RouterDescriptor(name="semantic", contract="1.0", factory="m:a")]

    @hookimpl
    def vsr_model_families(self):
        return [FamilyDescriptor(name="newfamily", contract="1.0")]

    @hookimpl
    def vsr_catalog(self):
        return [CatalogEntry(name="minilm", source="pkg://planted/model")]


def test_a_new_host_has_the_core_families_and_nothing_else():
    host = PluginHost()
    assert "bert" in host.families
    assert (host.backends, host.policies, host.routers, host.catalog) == ({}, {}, {}, ())
    assert host.report().plugins == ()


def test_a_registered_plugin_contributes_everything_at_once():
    host = PluginHost()
    record = host.register(Everything(), name="all", distribution="dist-all", version="3.0")
    assert record.backends == ("one", "two")
    assert host.report().plugins == (record,)
    assert list(host.backends) == ["one", "two"]
    assert host.backends["one"].source == PluginSource(name="all", distribution="dist-all", version="3.0")
    assert host.require("policy", "cost").factory == "m:a"
    assert host.require("router", "semantic").name == "semantic"
    assert host.require("backend", "two").name == "two"
    assert host.families["newfamily"].name == "newfamily"
    assert host.catalog[0].contributed_by == "all"


def test_published_mappings_cannot_be_changed():
    host = PluginHost()
    with pytest.raises(TypeError):
        host.backends["mine"] = None
    with pytest.raises(TypeError):
        host.families["mine"] = None


@pytest.mark.parametrize("name", ["", " ", "bad name", "a:b", None])
def test_a_malformed_name_is_refused(name):
    with pytest.raises(PluginError, match="is no plugin name"):
        PluginHost().register(Everything(), name=name)


@pytest.mark.parametrize("plugin", [None, object(), 7, "vsr_backends"])
def test_what_is_no_plugin_is_refused(plugin):
    host = PluginHost()
    with pytest.raises(PluginError, match="failed at register"):
        host.register(plugin, name="nothing")
    assert host.report().plugins == ()


def test_a_taken_plugin_name_is_refused_with_both_parties_named():
    host = PluginHost()
    host.register(Offers("one"), name="same", distribution="dist-a", version="1.0")
    with pytest.raises(PluginConflictError, match=r"'same' \(dist-a 1.0\) has it, so 'Same' \(registered by the app"):
        host.register(Offers("two"), name="Same")
    assert list(host.backends) == ["one"]


def test_a_taken_contribution_is_refused_and_nothing_changes():
    host = PluginHost()
    host.register(Offers("echo"), name="first")
    with pytest.raises(PluginConflictError, match=r"backend 'echo' is offered by 'first' .* and 'second'"):
        host.register(Offers("echo"), name="second")
    assert host.backends["echo"].plugin == "first"
    assert [record.name for record in host.report().plugins] == ["first"]


def test_precedence_lets_a_registration_replace_a_contribution():
    host = PluginHost(PluginSettings(precedence={"echo": "second"}))
    host.register(Offers("echo"), name="first")
    host.register(Offers("echo"), name="second")
    assert host.backends["echo"].plugin == "second"
    assert "gives it to 'second'" in host.report().plugins[0].conflicts[0]


def test_an_incompatible_plugin_is_refused():
    with pytest.raises(PluginIncompatibleError, match="upgrade vsr-core"):
        PluginHost().register(Offers("echo", contract="9.0"), name="future")


def test_a_switched_off_plugin_cannot_be_registered():
    with pytest.raises(PluginError, match=r"is disabled: switched off by plugins.disabled"):
        PluginHost(PluginSettings(disabled=("echo",))).register(Offers("echo"), name="echo")


def test_an_allow_list_is_about_installed_plugins_only():
    host = PluginHost(PluginSettings(only=()))
    host.register(Offers("echo"), name="echo")
    assert list(host.backends) == ["echo"]


def test_many_threads_registering_end_in_one_consistent_sorted_state():
    host = PluginHost()
    start = threading.Barrier(24)
    refused: list[str] = []

    def register(number):
        # 8 plugin names, each tried by three threads; every plugin of a name offers the same backend
        name = f"plugin-{number % 8}"
        start.wait()
        try:
            host.register(Offers(f"backend-{number % 8}"), name=name)
        except PluginConflictError as error:
            refused.append(error.plugin)

    threads = [threading.Thread(target=register, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [f"plugin-{number}" for number in range(8)]
    assert [record.name for record in host.report().plugins] == expected
    assert list(host.backends) == [f"backend-{number}" for number in range(8)]
    assert sorted(refused) == sorted(expected * 2)


def test_many_threads_claiming_one_backend_leave_it_to_exactly_one():
    host = PluginHost()
    start = threading.Barrier(16)
    refused: list[str] = []

    def register(number):
        start.wait()
        try:
            host.register(Offers("echo"), name=f"plugin-{number}")
        except PluginConflictError:
            refused.append(f"plugin-{number}")

    threads = [threading.Thread(target=register, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = host.report().plugins
    assert host.backends["echo"].plugin == winner.name
    assert sorted([*refused, winner.name]) == sorted(f"plugin-{number}" for number in range(16))


def test_a_plugin_that_hangs_while_registering_holds_up_nobody():
    class Hangs:
        @hookimpl
        def vsr_backends(self):
            threading.Event().wait(3)

    host = PluginHost(PluginSettings(timeout=0.2))
    failed: list[PluginError] = []

    def register():
        try:
            host.register(Hangs(), name="hangs")
        except PluginError as error:
            failed.append(error)

    thread = threading.Thread(target=register)
    thread.start()
    host.register(Offers("echo"), name="echo")
    assert list(host.backends) == ["echo"]
    thread.join()
    assert failed[0].stage == "describe"


def test_the_report_survives_json_and_says_its_schema(site, backend_plugin):
    site.plugin("echo", backend_plugin())
    site.plugin("broken", "raise RuntimeError('no')")
    site.plugin("newer", backend_plugin(name="newer", contract="1.7"))
    report = site.discover(disabled=("nobody",)).report()
    data = to_json(report)
    assert (data["schema"], data["contract"]) == (1, "1.0")
    assert [plugin["status"] for plugin in data["plugins"]] == ["broken", "active", "incompatible"]
    assert data["plugins"][1]["import_ms"] > 0
    assert from_json(PluginReport, data) == report


def test_later_failures_are_listed_once_each_in_order():
    host = PluginHost()
    host.register(Offers("echo"), name="echo")
    source = host.backends["echo"].source
    load = PluginFailure(stage="load", reason="out of memory", error="MemoryError")
    probe = PluginFailure(stage="probe", reason="no driver", error="OSError")
    for failure in (probe, load, load, probe):
        host.record_failure(source, failure)
    (record,) = host.report().plugins
    assert record.failures == (probe, load)
    assert record.status == "active"


def test_a_plugin_that_keeps_failing_does_not_fill_the_memory():
    host = PluginHost()
    host.register(Offers("echo"), name="echo")
    for number in range(1000):
        host.record_failure(
            host.backends["echo"].source, PluginFailure(stage="load", reason=str(number), error="ValueError")
        )
    assert len(host.report().plugins[0].failures) == 32


def test_requiring_what_a_disabled_plugin_seems_to_offer_says_that_it_is_off(site, backend_plugin):
    site.plugin("candle-echo", backend_plugin())
    host = site.discover(environ={"VSR_DISABLED_PLUGINS": "candle-echo"})
    with pytest.raises(
        PluginError,
        match=r"there is no backend 'echo': plugin 'candle-echo' \(dist-candle-echo 1.0\) is disabled: switched off by",
    ):
        host.require("backend", "echo")


def test_requiring_what_a_broken_plugin_seems_to_offer_gives_its_error(site):
    site.plugin("echo", "import planted_nowhere")
    with pytest.raises(PluginImportError, match="failed at import: ModuleNotFoundError"):
        site.discover().require("backend", "echo")


def test_an_unknown_backend_points_to_the_listing_of_what_cannot_be_used(site):
    site.plugin("other", "import planted_nowhere")
    with pytest.raises(AddressError, match="`vsr plugins` says why 1 of the installed plugins cannot be used"):
        site.discover().require("backend", "nobody")


def test_a_backend_of_an_adapter_that_is_not_installed_names_the_extra():
    with pytest.raises(AddressError, match=r"install one with `pip install vsr-core\[openvino\]`"):
        PluginHost().require("backend", "openvino")


def test_discovery_takes_entry_points_that_are_given(site, backend_plugin):
    from importlib_metadata import EntryPoint

    module = site.module("planted_given", backend_plugin())
    points = [EntryPoint("given", module, "vsr_core.plugins")]
    host = PluginHost.discover(PluginSettings(timeout=5.0), environ={}, entry_points=points)
    assert list(host.backends) == ["echo"]
    assert host.report().plugins[0].distribution is None
    assert module in sys.modules
