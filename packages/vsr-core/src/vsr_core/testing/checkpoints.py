"""Tiny, seeded checkpoints with the files and names of real ones, made where the test runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..contract import FloatArray

__all__ = ["BertShape", "write_bert"]

_WORDS = [
    "the",
    "a",
    "of",
    "and",
    "to",
    "in",
    "is",
    "it",
    "on",
    "for",
    "red",
    "green",
    "blue",
    "one",
    "two",
    "three",
    "cat",
    "dog",
    "tree",
    "river",
    "bank",
    "query",
    "answer",
]


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
    pooling: str = "mean",
    normalize: bool = True,
    prompts: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Path:
    """Write a sentence-transformers folder holding a random BERT and a WordPiece tokenizer; returns the folder.

    :param pooling: ``mean``, ``cls``, ``max`` or ``last``; :param config: overrides of ``config.json``.
    """
    shape = shape or BertShape()
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _write_tokenizer(folder)
    _write_json(folder / "config.json", _config(shape, vocabulary) | dict(config or {}))
    modules = [("0", "", "models.Transformer"), ("1", "1_Pooling", "models.Pooling")]
    if normalize:
        modules.append(("2", "2_Normalize", "models.Normalize"))
    _write_json(
        folder / "modules.json",
        [
            {"idx": int(index), "name": index, "path": path, "type": f"sentence_transformers.{kind}"}
            for index, path, kind in modules
        ],
    )
    names = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "last": "lasttoken"}
    flags = {f"pooling_mode_{name}": name == names[pooling] for name in names.values()}
    (folder / "1_Pooling").mkdir(exist_ok=True)
    _write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": shape.hidden, **flags})
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": shape.positions, "do_lower_case": False})
    if prompts is not None:
        _write_json(folder / "config_sentence_transformers.json", {"prompts": dict(prompts)})
    _write_weights(folder / "model.safetensors", shape, vocabulary)
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


def _write_tokenizer(folder: Path) -> int:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + list("0123456789.,!?'-")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "model_max_length": 512})
    return len(vocabulary)


def _write_weights(path: Path, shape: BertShape, vocabulary: int) -> None:
    from safetensors.numpy import save_file

    source = np.random.default_rng(shape.seed)

    def normal(*size: int) -> FloatArray:
        return source.normal(0.0, shape.spread, size).astype(np.float32)

    def near_one(size: int) -> FloatArray:
        return source.uniform(0.5, 1.5, size).astype(np.float32)

    hidden, inner = shape.hidden, shape.intermediate
    tensors = {
        "embeddings.word_embeddings.weight": normal(vocabulary, hidden),
        "embeddings.position_embeddings.weight": normal(shape.positions, hidden),
        "embeddings.token_type_embeddings.weight": normal(2, hidden),
        "embeddings.LayerNorm.weight": near_one(hidden),
        "embeddings.LayerNorm.bias": normal(hidden),
        "pooler.dense.weight": normal(hidden, hidden),
        "pooler.dense.bias": normal(hidden),
    }
    for index in range(shape.layers):
        layer = f"encoder.layer.{index}."
        linears = [(f"attention.self.{name}", hidden, hidden) for name in ("query", "key", "value")]
        linears += [("attention.output.dense", hidden, hidden)]
        linears += [("intermediate.dense", inner, hidden), ("output.dense", hidden, inner)]
        for name, out, width in linears:
            tensors[f"{layer}{name}.weight"] = normal(out, width)
            tensors[f"{layer}{name}.bias"] = normal(out)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            tensors[f"{layer}{name}.weight"] = near_one(hidden)
            tensors[f"{layer}{name}.bias"] = normal(hidden)
    save_file(tensors, str(path))


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
