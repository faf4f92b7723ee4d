"""Configurations written to real files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from vsr_core.config import Configuration, load_config
from vsr_core.errors import ConfigError

NOTHING: Mapping[str, str] = {}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a configuration into the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "vsr.yaml") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def load(write: Callable[..., Path]) -> Callable[..., Configuration]:
    """Writes a configuration and loads it, with no environment but the one given."""

    def load(text: str, environ: Mapping[str, str] = NOTHING, name: str = "vsr.yaml") -> Configuration:
        return load_config(write(text, name), environ=environ)

    return load


@pytest.fixture
def refused(load: Callable[..., Configuration]) -> Callable[..., list[str]]:
    """The problems for which a configuration is refused."""

    def refused(text: str, environ: Mapping[str, str] = NOTHING, name: str = "vsr.yaml") -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(text, environ, name)
        assert caught.value.message.splitlines()[1:] == list(caught.value.problems)
        return list(caught.value.problems)

    return refused
