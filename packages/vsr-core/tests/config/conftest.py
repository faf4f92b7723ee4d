"""Configurations written to real files."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

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


@pytest.fixture
def model(tmp_path: Path) -> Callable[..., str]:
    """Writes a BERT of width 4 and depth 2 without weights or a tokenizer worth the name, and gives its folder's name."""

    def model(name: str, **config: Any) -> str:
        folder = tmp_path / name
        folder.mkdir()
        values = {
            "model_type": "bert",
            "architectures": ["BertModel"],
            "hidden_size": 4,
            "num_hidden_layers": 2,
            "max_position_embeddings": 512,
        }
        (folder / "config.json").write_text(json.dumps(values | config), encoding="utf-8")
        (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
        write_safetensors(folder / "model.safetensors", {"embeddings.word_embeddings.weight": [8, 4]})
        return name

    return model


def write_safetensors(path: Path, shapes: dict[str, list[int]]) -> None:
    header, end = {}, 0
    for name, (rows, columns) in shapes.items():
        size = 4 * rows * columns
        header[name] = {"dtype": "F32", "shape": [rows, columns], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))
