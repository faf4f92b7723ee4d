"""A standard test is left out or replaced with a reason on record, or not at all."""

from __future__ import annotations

import pytest
from vsr_core.testing import BackendConformance, EncoderEngineConformance, PluginConformance

pytest_plugins = ["pytester"]

TEST = "test_the_module_is_light"
REASON = "it ships its own interpreter"


def replacement(self):
    """In the place of a standard test."""


@pytest.mark.parametrize("kit", [BackendConformance, EncoderEngineConformance, PluginConformance])
def test_no_standard_test_is_overridden_without_a_reason(kit):
    for name in [name for name in dir(kit) if name.startswith("test_")]:
        with pytest.raises(TypeError, match=rf"overrides {name}: say why in deviations"):
            type("TestMine", (kit,), {name: replacement})


def test_nor_removed():
    with pytest.raises(TypeError, match=f"overrides {TEST}"):
        type("TestMine", (PluginConformance,), {TEST: None})


def test_nor_overridden_by_a_class_beside_the_kit():
    mixin = type("Mixin", (), {TEST: replacement})
    with pytest.raises(TypeError, match=f"overrides {TEST}"):
        type("TestMine", (mixin, PluginConformance), {})


def test_nor_by_a_class_that_forgets_the_reason_of_its_parent():
    parent = type("TestTheirs", (PluginConformance,), {TEST: replacement, "deviations": {TEST: REASON}})
    assert type("TestMine", (parent,), {}).deviations == {TEST: REASON}
    with pytest.raises(TypeError, match=f"overrides {TEST}"):
        type("TestMine", (parent,), {"deviations": {}})


def test_nor_after_the_class_was_made():
    mine = type("TestMine", (PluginConformance,), {"module": "m"})
    mine().test_no_standard_test_was_left_out()
    setattr(mine, TEST, replacement)
    with pytest.raises(AssertionError, match=f"overrides {TEST}"):
        mine().test_no_standard_test_was_left_out()


def test_with_a_reason_a_test_is_replaced():
    mine = type("TestMine", (PluginConformance,), {TEST: replacement, "deviations": {TEST: REASON}})
    mine().test_no_standard_test_was_left_out()
    assert getattr(mine, TEST) is replacement


@pytest.mark.parametrize(
    ("deviations", "message"),
    [
        ({TEST: " "}, "gives no reason"),
        ({TEST: True}, "gives no reason"),
        ({"test_the_module_is_lite": REASON}, "is no standard test of this kit"),
    ],
)
def test_a_reason_is_a_text_about_a_standard_test(deviations, message):
    with pytest.raises(TypeError, match=message):
        type("TestMine", (PluginConformance,), {"deviations": deviations})


def test_a_test_that_is_listed_and_not_replaced_is_skipped_with_its_reason(conform):
    source = f"""
        from vsr_core.testing import PluginConformance

        class TestMine(PluginConformance):
            module = "plain_plugin"
            deviations = {{"test_an_entry_point_names_the_module": "nobody installs it", {TEST!r}: {REASON!r}}}
    """
    found = conform(source)
    assert found["failed"] == set()
    assert found["skipped"] == {"test_an_entry_point_names_the_module", TEST}


def test_an_override_without_a_reason_is_an_error_of_the_collection(pytester):
    pytester.makepyfile(
        """
        from vsr_core.testing import PluginConformance

        class TestMine(PluginConformance):
            module = "plain_plugin"
            def test_the_module_is_light(self): ...
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TestMine overrides test_the_module_is_light: say why in deviations*"])
