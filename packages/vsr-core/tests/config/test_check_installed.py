"""A configuration is checked against what is really installed, too."""

from __future__ import annotations

from vsr_core.config import check, load_config
from vsr_core.plugins import BackendInstances, PluginHost


def test_what_is_really_installed_can_be_checked(write):
    config = load_config(write('roles: {embedding: {default: "no-such-backend:a"}}'), environ={})
    host = PluginHost.discover(config.plugins, environ={})
    report = check(config, host, BackendInstances(host, config.instances))
    assert [problem.code for problem in report.problems] == ["not_installed"]
