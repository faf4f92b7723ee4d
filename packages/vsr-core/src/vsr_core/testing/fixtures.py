"""Fixtures for the tests of plugins, as a pytest plugin: ``pytest -p vsr_core.testing.fixtures``.

Name the module in ``pytest_plugins`` of the topmost ``conftest.py``, or import the fixtures there by name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..plugins import PluginHost
from .encoders import EncoderFamily, EncoderHead, write_encoder

__all__ = ["TinyCheckpoint", "empty_host", "plugin_host", "tiny_checkpoint"]

TinyCheckpoint = Callable[[EncoderFamily, EncoderHead], Path]
"""Gives the folder of a tiny checkpoint of a family with a head."""


def empty_host() -> PluginHost:
    """A host without plugins, whatever is installed: ``host.register(plugin, name=...)`` adds yours."""
    return PluginHost.discover(entry_points=(), environ={})


@pytest.fixture
def plugin_host() -> PluginHost:
    """A host without plugins, whatever is installed: ``plugin_host.register(plugin, name=...)`` adds yours."""
    return empty_host()


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> TinyCheckpoint:
    """Writes random encoders as HF transformers saves them, each once: ``tiny_checkpoint("bert", "sequence")``.

    Do not change the files; :func:`~vsr_core.testing.write_encoder` writes them into a folder of your own.
    """
    folders: dict[tuple[EncoderFamily, EncoderHead], Path] = {}

    def get(family: EncoderFamily, head: EncoderHead) -> Path:
        if (family, head) not in folders:
            folders[family, head] = write_encoder(tmp_path_factory.mktemp(family), family, head=head)
        return folders[family, head]

    return get
