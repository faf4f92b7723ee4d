from __future__ import annotations

import pytest
from vsr_core.contract import CONTRACT_VERSION
from vsr_core.errors import ConfigError
from vsr_core.plugins.compatibility import incompatibility, parse_contract
from vsr_core.plugins.records import PluginSource

SOURCE = PluginSource(name="echo", distribution="vsr-echo", version="1.0")
MAJOR, MINOR = CONTRACT_VERSION


def test_a_plugin_that_needs_this_contract_or_an_earlier_minor_fits():
    assert all(incompatibility((MAJOR, minor), SOURCE) is None for minor in range(MINOR + 1))


def test_a_newer_minor_asks_for_a_newer_core():
    assert incompatibility((MAJOR, MINOR + 3), SOURCE) == (
        f"needs contract {MAJOR}.{MINOR + 3}, this vsr-core has {MAJOR}.{MINOR}: upgrade vsr-core"
    )


def test_a_newer_major_asks_for_a_newer_core():
    assert incompatibility((MAJOR + 1, 0), SOURCE).endswith(": upgrade vsr-core")


def test_an_older_major_asks_for_a_newer_plugin():
    assert incompatibility((MAJOR - 1, 9), SOURCE).endswith(": upgrade vsr-echo")


@pytest.mark.parametrize("text", ["1", "1.0.0", ">=1.0", "", "one.zero", " 1.0", "1.99999", "\u0661.0", None, 1.0])
def test_a_malformed_version_is_refused(text):
    with pytest.raises(ConfigError, match="state the version that is needed at least"):
        parse_contract(text)
