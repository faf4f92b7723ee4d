from __future__ import annotations

import pytest
from vsr_core.errors import ConfigError
from vsr_core.plugins.records import PluginSource
from vsr_core.plugins.settings import PluginSettings, Selection

ONNX = PluginSource(name="onnx", distribution="vsr-onnx", version="1.0")
REMOTE = PluginSource(name="remote", distribution="vsr-remote", version="1.0")


def refusals(environ, **settings):
    selection = Selection.of(PluginSettings(**settings), environ)
    return [selection.refusal(ONNX), selection.refusal(REMOTE)]


def test_everything_is_allowed_by_default():
    assert refusals({}) == [None, None]


@pytest.mark.parametrize("listed", ["onnx", "vsr-onnx", "VSR_Onnx", " onnx , ", "vsr.onnx"])
def test_plugins_are_named_by_entry_point_or_distribution_in_any_spelling(listed):
    assert refusals({"VSR_PLUGINS": listed}) == [None, "not among the plugins in VSR_PLUGINS"]
    assert refusals({"VSR_DISABLED_PLUGINS": listed}) == ["switched off by VSR_DISABLED_PLUGINS", None]


def test_an_empty_allow_list_means_none():
    assert refusals({"VSR_PLUGINS": ""}) == ["not among the plugins in VSR_PLUGINS"] * 2
    assert refusals({}, only=()) == ["not among the plugins in plugins.only"] * 2


def test_an_empty_deny_list_denies_nothing():
    assert refusals({"VSR_DISABLED_PLUGINS": ""}) == [None, None]


def test_the_environment_replaces_the_allow_list_of_the_settings():
    assert refusals({"VSR_PLUGINS": "remote"}, only=("onnx",)) == ["not among the plugins in VSR_PLUGINS", None]


def test_the_deny_lists_add_up_and_win_over_the_allow_list():
    reasons = refusals({"VSR_DISABLED_PLUGINS": "onnx"}, only=("onnx", "remote"), disabled=("vsr-remote",))
    assert reasons == ["switched off by VSR_DISABLED_PLUGINS", "switched off by plugins.disabled"]


def test_every_listed_name_that_fits_no_plugin_is_warned_of():
    settings = PluginSettings(disabled=("onx",), precedence={"echo": "nobody"})
    warnings = Selection.of(settings, {"VSR_PLUGINS": "onnx,remot"}).unknown([ONNX, REMOTE])
    assert warnings == (
        "plugins.precedence names 'nobody', and no installed plugin or distribution is called that",
        "plugins.disabled names 'onx', and no installed plugin or distribution is called that",
        "VSR_PLUGINS names 'remot', and no installed plugin or distribution is called that",
    )


@pytest.mark.parametrize(("text", "strict"), [("1", True), (" Yes ", True), ("0", False), ("", False)])
def test_the_environment_decides_over_strictness(text, strict):
    assert PluginSettings(strict=not strict).under({"VSR_STRICT_PLUGINS": text}).strict is strict
    assert PluginSettings(strict=strict).under({}).strict is strict


def test_a_strictness_that_is_neither_true_nor_false_is_refused():
    with pytest.raises(ConfigError, match="VSR_STRICT_PLUGINS is 'maybe': use 1 or 0"):
        PluginSettings().under({"VSR_STRICT_PLUGINS": "maybe"})
