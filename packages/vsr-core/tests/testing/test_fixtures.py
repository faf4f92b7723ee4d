"""The fixtures for other people's tests."""

from __future__ import annotations

from vsr_core.testing import ToyPlugin, plugin_host, tiny_checkpoint

__all__ = ["plugin_host", "tiny_checkpoint"]  # as an author's conftest imports them


def test_a_plugin_host_has_no_plugins_but_those_that_are_registered(plugin_host):
    assert plugin_host.report().plugins == ()
    plugin_host.register(ToyPlugin(), name="toy")
    assert list(plugin_host.backends) == ["toy"]


def test_a_tiny_checkpoint_is_written_once(tiny_checkpoint):
    folder = tiny_checkpoint("bert", "sequence")
    assert (folder / "model.safetensors").is_file()
    assert tiny_checkpoint("bert", "sequence") == folder
    assert tiny_checkpoint("bert", "token") != folder
