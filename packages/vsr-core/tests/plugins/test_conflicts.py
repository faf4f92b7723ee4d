from __future__ import annotations

import pytest
from vsr_core.contract import FamilyDescriptor
from vsr_core.errors import AddressError, PluginConflictError
from vsr_core.plugins import PluginHost, PluginSettings

TWO = """
    @hookimpl
    def vsr_backends():
        return [BackendDescriptor(name="shared", contract="1.0", factory="m:a"),
                BackendDescriptor(name="own-{name}", contract="1.0", factory="m:a")]

    @hookimpl
    def vsr_routing_policies():
        return [PolicyDescriptor(name="policy-{name}", contract="1.0", factory="m:a")]
"""

EACH = {
    "backends": ("vsr_backends", "BackendDescriptor(name='contested', contract='1.0', factory='m:a')"),
    "policies": ("vsr_routing_policies", "PolicyDescriptor(name='contested', contract='1.0', factory='m:a')"),
    "routers": ("vsr_routers", "RouterDescriptor(name='contested', contract='1.0', factory='m:a')"),
    "families": ("vsr_model_families", "FamilyDescriptor(name='contested', contract='1.0')"),
    "catalog": ("vsr_catalog", "CatalogEntry(name='contested')"),
}


def offering(kind):
    hook, descriptor = EACH[kind]
    return f"@hookimpl\ndef {hook}(): return [{descriptor}]\n"


def names(host, kind):
    found = getattr(host, kind)
    return [entry.name for entry in found] if kind == "catalog" else list(found)


def test_neither_side_of_a_conflict_is_used_and_everything_else_is(site, record_of):
    site.plugin("one", TWO.format(name="one"), version="1.1")
    site.plugin("two", TWO.format(name="two"), version="2.2")
    host = site.discover()
    assert list(host.backends) == ["own-one", "own-two"]
    assert list(host.policies) == ["policy-one", "policy-two"]
    for name in ("one", "two"):
        record = record_of(host, name)
        assert record.status == "active"
        assert record.backends == (f"own-{name}", "shared")
        assert record.conflicts == (
            "backend 'shared' is offered by 'one' (dist-one 1.1) and 'two' (dist-two 2.2): neither is used; disable "
            "one of them or name the one to use in plugins.precedence",
        )


@pytest.mark.parametrize("kind", EACH)
def test_each_kind_of_contribution_has_a_name_space_of_its_own(site, kind):
    site.plugin("one", offering(kind))
    site.plugin("two", offering(kind))
    assert "contested" not in names(site.discover(), kind)
    assert "contested" in names(site.discover(precedence={"contested": "two"}), kind)


def test_one_name_may_serve_different_kinds(site):
    site.plugin("one", offering("backends"))
    site.plugin("two", offering("policies"))
    host = site.discover()
    assert list(host.backends) == list(host.policies) == ["contested"]


@pytest.mark.parametrize("winner", ["two", "dist-two", "DIST_TWO"])
def test_precedence_names_the_winner_by_plugin_or_distribution(site, record_of, winner):
    site.plugin("one", TWO.format(name="one"))
    site.plugin("two", TWO.format(name="two"))
    host = site.discover(precedence={"shared": winner})
    assert host.backends["shared"].plugin == "two"
    assert record_of(host, "two").conflicts == ()
    assert record_of(host, "one").conflicts[0].endswith("plugins.precedence gives it to 'two'")


def test_a_precedence_for_somebody_else_settles_nothing(site):
    site.plugin("one", TWO.format(name="one"))
    site.plugin("two", TWO.format(name="two"))
    host = site.discover(precedence={"shared": "three"})
    assert "shared" not in host.backends
    assert "plugins.precedence names 'three'" in host.report().warnings[0]


def test_requiring_a_contested_name_says_who_contests_it(site):
    site.plugin("one", TWO.format(name="one"))
    site.plugin("two", TWO.format(name="two"))
    with pytest.raises(PluginConflictError, match=r"offered by 'one' .* and 'two'") as caught:
        site.discover().require("backend", "shared")
    assert caught.value.stage == "register"


def test_a_core_family_stays_when_a_plugin_claims_its_name(site, record_of):
    core = FamilyDescriptor(name="contested", contract="1.0", summary="the core's")
    site.plugin("one", offering("families"))
    settings = PluginSettings(timeout=5.0)
    host = PluginHost.discover(settings, environ={}, families=[core])
    assert host.families["contested"] is core
    assert record_of(host, "one").conflicts == (
        "family 'contested' is offered by the core and 'one' (dist-one 1.0): the core's is used; name the plugin in "
        "plugins.precedence to use its own instead",
    )


def test_precedence_gives_a_core_family_to_a_plugin(site, record_of):
    core = FamilyDescriptor(name="contested", contract="1.0", summary="the core's")
    site.plugin("one", offering("families"))
    settings = PluginSettings(timeout=5.0, precedence={"contested": "one"})
    host = PluginHost.discover(settings, environ={}, families=[core])
    assert host.families["contested"].summary == ""
    assert record_of(host, "one").conflicts == ()


def test_a_new_family_joins_the_cores_in_sorted_order(site):
    core = [FamilyDescriptor(name=name, contract="1.0") for name in ("zeta", "alpha")]
    site.plugin("one", offering("families"))
    host = PluginHost.discover(PluginSettings(timeout=5.0), environ={}, families=core)
    assert list(host.families) == ["alpha", "contested", "zeta"]


def test_catalog_entries_say_which_plugin_brought_them(site):
    site.plugin("one", offering("catalog"))
    (entry,) = site.discover().catalog
    assert (entry.name, entry.contributed_by) == ("contested", "one")


def test_a_name_that_nobody_offers_is_an_address_error(site):
    site.plugin("one", offering("policies"))
    with pytest.raises(AddressError, match="no plugin offers a policy called 'nobody'; `vsr plugins` lists"):
        site.discover().require("policy", "nobody")
