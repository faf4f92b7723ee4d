from __future__ import annotations

from vsr_core.plugins import PluginHost, PluginSettings


def test_the_installed_plugin_is_active_and_offers_no_policy_yet():
    host = PluginHost.discover(PluginSettings(only=("vsr-router-policy",)), environ={})
    (record,) = [record for record in host.report().plugins if record.status != "disabled"]
    assert (record.name, record.status, record.hooks) == ("router-policy", "active", ("vsr_routing_policies",))
    assert not host.policies
