"""What a plugin does when it is imported, registered and described, and what that does to the others."""

from __future__ import annotations

import sys

import pytest
from vsr_core.errors import (
    ConfigError,
    PluginConflictError,
    PluginError,
    PluginImportError,
    PluginIncompatibleError,
)

GOOD = """
    @hookimpl
    def vsr_backends():
        return [BackendDescriptor(name="good", contract="1.0", factory="planted_engine:Adapter")]
"""

BROKEN = {
    "raises": ("import", "RuntimeError", "raise RuntimeError('no luck')", "no luck"),
    "missing_module": ("import", "ModuleNotFoundError", "import planted_nowhere", "No module named 'planted_nowhere'"),
    "missing_library": ("import", "OSError", "raise OSError('libcuda.so.1: cannot open')", "libcuda.so.1: cannot open"),
    "wrong_syntax": ("import", "SyntaxError", "def:", "invalid syntax"),
    "exits": ("import", "SystemExit", "import sys; sys.exit('bye')", "it called sys.exit(bye)"),
    "interrupts": ("import", "KeyboardInterrupt", "raise KeyboardInterrupt", "it gave no message"),
    "hangs": ("import", "TimeoutError", "import threading; threading.Event().wait(3)", "did not finish within 0.2 s"),
    "no_hooks": ("register", "ConfigError", "def vsr_backends(): return []", "it implements no hook"),
    "unknown_hook": (
        "register",
        "ConfigError",
        "@hookimpl\ndef vsr_backend(): return []",
        "there is no hook 'vsr_backend'; did you mean 'vsr_backends'?",
    ),
    "wrong_arguments": ("register", "PluginValidationError", "@hookimpl\ndef vsr_backends(host): return []", "host"),
    "hook_raises": ("describe", "ValueError", "@hookimpl\ndef vsr_catalog(): raise ValueError('no')", "no"),
    "hook_exits": ("describe", "SystemExit", "@hookimpl\ndef vsr_catalog(): raise SystemExit(2)", "sys.exit(2)"),
    "hook_hangs": (
        "describe",
        "TimeoutError",
        "import threading\n@hookimpl\ndef vsr_backends(): threading.Event().wait(3)",
        "did not finish within 0.2 s",
    ),
    "no_list": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_backends(): return {'a': 1}",
        "vsr_backends returned a dict, not a list of BackendDescriptor",
    ),
    "not_descriptors": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_backends(): return [object()]",
        "vsr_backends returned a list with a object, not of BackendDescriptor alone",
    ),
    "other_descriptors": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_routers():\n return [PolicyDescriptor(name='a', contract='1.0', factory='m:a')]",
        "not of RouterDescriptor alone",
    ),
    "field_type": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_backends(): return [BackendDescriptor(name='a', contract='1.0', factory=print)]",
        "malformed BackendDescriptor",
    ),
    "nested_field_type": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_catalog(): return [CatalogEntry(name='a', dimensions=('wide',))]",
        "CatalogEntry.dimensions[0]: expected a int, got str",
    ),
    "bad_name": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_backends(): return [BackendDescriptor(name='Bad Name', contract='1.0', factory='m:a')]",
        "'Bad Name' is no name",
    ),
    "bad_backend_name": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_backends(): return [BackendDescriptor(name='Upper', contract='1.0', factory='m:a')]",
        "'Upper' is no backend name",
    ),
    "empty_name": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_catalog(): return [CatalogEntry(name='')]",
        "'' is no name",
    ),
    "bad_factory": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_backends(): return [BackendDescriptor(name='a', contract='1.0', factory='module')]",
        "'module', which is not of the form 'module:attribute'",
    ),
    "bad_contract": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_backends(): return [BackendDescriptor(name='a', contract='one', factory='m:a')]",
        "contract is 'one'",
    ),
    "same_name_twice": (
        "describe",
        "ConfigError",
        "@hookimpl\ndef vsr_catalog(): return [CatalogEntry(name='a'), CatalogEntry(name='a')]",
        "vsr_catalog names 'a' twice",
    ),
}

EVIL_OBJECTS = {
    "getattr_raises": "def __getattr__(self, name): raise RuntimeError('evil')",
    "getattribute_hangs": "def __getattribute__(self, name):\n        import threading; threading.Event().wait(3)",
    "dir_raises": "def __dir__(self): raise SystemExit(1)",
    "property_hangs": "@property\n    def engine(self):\n        import threading; threading.Event().wait(3)",
    "hash_raises": "def __hash__(self): raise RuntimeError('evil')\n    def __eq__(self, other): raise RuntimeError('evil')",
    "repr_raises": "def __repr__(self): raise RuntimeError('evil')",
    "class_lies": "@property\n    def __class__(self): raise RuntimeError('evil')",
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_plugin_is_listed_with_the_reason_and_takes_nobody_down(site, record_of, case):
    stage, error, source, reason = BROKEN[case]
    site.plugin("aaa", GOOD.replace("good", "before"))
    site.plugin("broken", source, distribution="dist-broken", version="2.1")
    site.plugin("zzz", GOOD)
    host = site.discover(timeout=0.2 if error == "TimeoutError" else 5.0)
    record = record_of(host, "broken")
    assert (record.status, record.stage, record.distribution, record.version) == ("broken", stage, "dist-broken", "2.1")
    assert reason in record.reason
    (failure,) = record.failures
    assert (failure.stage, failure.error, failure.reason) == (stage, error, record.reason)
    assert list(host.backends) == ["before", "good"]


@pytest.mark.parametrize("case", EVIL_OBJECTS)
def test_a_plugin_object_full_of_traps_takes_nobody_down(site, case):
    source = f"class Plugin:\n    {EVIL_OBJECTS[case]}\n    @hookimpl\n    def vsr_catalog(self): return []\nplugin = Plugin()\n"
    module = site.module("planted_evil", source)
    site.install("evil", plugins={"evil": f"{module}:plugin"})
    site.plugin("good", GOOD)
    host = site.discover(timeout=0.2)
    assert list(host.backends) == ["good"]
    assert {record.name for record in host.report().plugins} == {"evil", "good"}


def test_a_module_whose_attributes_are_traps_can_still_be_a_plugin(site, record_of):
    site.plugin("trap", GOOD + "\n    def __getattr__(name): raise RuntimeError(name)\n")
    assert record_of(site.discover(), "trap").status == "active"


def test_descriptors_are_copied_so_that_a_plugin_cannot_change_them_later(site):
    site.plugin(
        "sly",
        """
        labels = {"a": "b"}

        @hookimpl
        def vsr_catalog():
            return [CatalogEntry(name="one", metadata=labels)]
        """,
    )
    host = site.discover()
    module = sys.modules[host.report().plugins[0].entry_point]
    module.labels["a"] = "changed"
    assert host.catalog[0].metadata == {"a": "b"}


def test_a_plugin_may_be_an_object_of_a_module(site):
    module = site.module(
        "planted_object",
        """
        class Plugin:
            @hookimpl
            def vsr_backends(self):
                return [BackendDescriptor(name="good", contract="1.0", factory="m:a")]

        plugin = Plugin()
        """,
    )
    site.install("object", plugins={"object": f"{module}:plugin"})
    assert list(site.discover().backends) == ["good"]


def test_an_entry_point_without_its_attribute_is_broken_at_import(site, record_of):
    module = site.module("planted_empty", "")
    site.install("one", plugins={"one": f"{module}:plugin"})
    record = record_of(site.discover(), "one")
    assert (record.stage, record.failures[0].error) == ("import", "AttributeError")


def test_a_malformed_plugin_name_is_refused_without_an_import(site, record_of):
    site.install("one", plugins={"bad name": "planted_never"})
    record = record_of(site.discover(), "bad name")
    assert (record.status, record.stage, record.import_ms) == ("broken", "register", None)
    assert "'bad name' is no plugin name" in record.reason


def test_a_plugin_may_prepare_for_a_hook_that_does_not_exist_yet(site, record_of):
    site.plugin("future", GOOD + "\n    @hookimpl(optionalhook=True)\n    def vsr_tomorrow(): return []\n")
    record = record_of(site.discover(), "future")
    assert (record.status, record.hooks) == ("active", ("vsr_backends",))


def test_a_switched_off_plugin_is_listed_and_never_imported(site, record_of):
    site.plugin("good", GOOD)
    site.plugin("loud", "raise RuntimeError('imported')", distribution="dist-loud")
    host = site.discover(environ={"VSR_DISABLED_PLUGINS": " DIST_LOUD , nobody"})
    record = record_of(host, "loud")
    assert (record.status, record.reason) == ("disabled", "switched off by VSR_DISABLED_PLUGINS")
    assert (record.stage, record.failures, record.distribution) == (None, (), "dist-loud")
    assert record.entry_point not in sys.modules
    assert host.report().warnings == (
        "VSR_DISABLED_PLUGINS names 'nobody', and no installed plugin or distribution is called that",
    )


def test_an_empty_variable_switches_every_plugin_off(site):
    site.plugin("good", GOOD)
    host = site.discover(environ={"VSR_PLUGINS": ""})
    assert not host.backends
    assert [record.status for record in host.report().plugins] == ["disabled"]


def test_a_plugin_for_a_newer_contract_says_what_to_upgrade(site, record_of, backend_plugin):
    site.plugin("newer", backend_plugin(contract="1.3"))
    host = site.discover()
    record = record_of(host, "newer")
    assert (record.status, record.stage, record.backends) == ("incompatible", "describe", ("echo",))
    assert record.reason == "needs contract 1.3, this vsr-core has 1.0: upgrade vsr-core"
    assert not host.backends
    with pytest.raises(PluginIncompatibleError, match=r"plugin 'newer' .* needs contract 1.3"):
        host.require("backend", "echo")


def test_one_incompatible_descriptor_takes_out_the_whole_plugin(site, record_of):
    site.plugin(
        "mixed",
        """
        @hookimpl
        def vsr_backends():
            return [BackendDescriptor(name="old", contract="0.9", factory="m:a"),
                    BackendDescriptor(name="now", contract="1.0", factory="m:a")]
        """,
    )
    host = site.discover()
    assert record_of(host, "mixed").reason.endswith("upgrade dist-mixed")
    assert not host.backends


def test_two_plugins_of_one_name_are_both_listed_and_neither_is_imported(site):
    site.plugin("same", GOOD, distribution="dist-a")
    site.plugin("same", GOOD, distribution="dist-b", version="2.0")
    host = site.discover()
    first, second = host.report().plugins
    assert (
        first.reason
        == second.reason
        == (
            "the plugin name 'same' is claimed by dist-a 1.0 and dist-b 2.0: neither is used; disable one of "
            "them or name the one to use in plugins.precedence"
        )
    )
    assert (first.status, first.stage, first.import_ms) == ("broken", "register", None)
    assert not host.backends


def test_precedence_names_the_distribution_of_a_contested_plugin_name(site):
    site.plugin("same", GOOD.replace("good", "from-a"), distribution="dist-a")
    site.plugin("same", GOOD.replace("good", "from-b"), distribution="dist-b")
    host = site.discover(precedence={"same": "dist-b"}, strict=True)
    assert list(host.backends) == ["from-b"]
    loser, winner = host.report().plugins
    assert (loser.status, winner.status) == ("disabled", "active")
    assert loser.reason.endswith("plugins.precedence gives it to 'dist-b'")


def test_switching_one_off_ends_the_contest(site):
    site.plugin("same", GOOD.replace("good", "from-a"), distribution="dist-a")
    site.plugin("same", GOOD.replace("good", "from-b"), distribution="dist-b")
    assert list(site.discover(disabled=("dist-b",)).backends) == ["from-a"]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("raise RuntimeError('no luck')", PluginImportError),
        ("@hookimpl\ndef vsr_catalog(): raise ValueError('no luck')", PluginError),
    ],
)
def test_strict_raises_the_first_failure_with_its_cause(site, source, error):
    site.plugin("good", GOOD)
    site.plugin("broken", source, distribution="dist-broken")
    with pytest.raises(error, match=r"plugin 'broken' \(dist-broken 1.0\) failed at .*: no luck") as caught:
        site.discover(strict=True)
    assert (caught.value.plugin, caught.value.distribution) == ("broken", "dist-broken")
    assert str(caught.value.__cause__) == "no luck"


def test_strict_by_the_environment_raises_as_well(site, backend_plugin):
    site.plugin("newer", backend_plugin(contract="2.0"))
    with pytest.raises(PluginIncompatibleError, match="upgrade vsr-core"):
        site.discover(environ={"VSR_STRICT_PLUGINS": "1"})
    with pytest.raises(ConfigError, match="VSR_STRICT_PLUGINS"):
        site.discover(environ={"VSR_STRICT_PLUGINS": "perhaps"})


def test_strict_raises_conflicts(site):
    site.plugin("one", GOOD)
    site.plugin("two", GOOD)
    with pytest.raises(PluginConflictError, match=r"backend 'good' is offered by 'one' .* and 'two'"):
        site.discover(strict=True)
    assert list(site.discover(strict=True, precedence={"good": "two"}).backends) == ["good"]


def test_the_order_of_installation_changes_nothing(site):
    for name in ("zeta", "alpha", "mid"):
        site.plugin(name, GOOD.replace("good", f"from-{name}"))
    host = site.discover()
    assert [record.name for record in host.report().plugins] == ["alpha", "mid", "zeta"]
    assert list(host.backends) == ["from-alpha", "from-mid", "from-zeta"]


def test_strict_raises_a_contested_plugin_name(site):
    site.plugin("same", GOOD, distribution="dist-a")
    site.plugin("same", GOOD, distribution="dist-b")
    with pytest.raises(PluginConflictError, match=r"^the plugin name 'same' is claimed by dist-a 1\.0 and dist-b 1\.0"):
        site.discover(strict=True)
