"""A tiny, seeded BERT in a sentence-transformers folder, made where the test runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..contract import PoolingMode
from .sentence_transformers import write_sentence_transformer
from .tensors import bert_tensors, draw
from .tokenizer_files import write_tokenizer

__all__ = ["BertShape", "write_bert"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BertShape:
    """The shape of a tiny BERT.

    :param spread: standard deviation of the weights; above about 0.2 attention is peaked and layers differ clearly.
    """

    hidden: int = 32
    layers: int = 3
    heads: int = 4
    intermediate: int = 64
    positions: int = 64
    spread: float = 0.3
    seed: int = 0


def write_bert(
    folder: Path,
    shape: BertShape | None = None,
    *,
    pooling: PoolingMode = "mean",
    normalize: bool = True,
    prompts: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Path:
    """Write a sentence-transformers folder holding a random BERT and a WordPiece tokenizer; returns the folder.

    :param config: overrides of ``config.json``; the weights stay as the shape has them.
    """
    from safetensors.numpy import save_file

    shape = shape or BertShape()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = write_tokenizer(folder, "bert", max_tokens=512)
    stated = _config(shape, tokenizer.vocabulary)
    (folder / "config.json").write_text(json.dumps(stated | dict(config or {}), indent=1), encoding="utf-8")
    write_sentence_transformer(
        folder,
        hidden=shape.hidden,
        pooling=pooling,
        normalize=normalize,
        prompts=prompts,
        max_tokens=shape.positions,
        dialect="older",
    )
    tensors = draw(bert_tensors(stated), seed=shape.seed, deviation=lambda _: shape.spread)
    save_file(tensors, str(folder / "model.safetensors"))
    return folder


def _config(shape: BertShape, vocabulary: int) -> dict[str, Any]:
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": vocabulary,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.intermediate,
        "max_position_embeddings": shape.positions,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "pad_token_id": 0,
    }
