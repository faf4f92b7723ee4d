"""Tiny, seeded encoders of every family, with the files, names and configurations of real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .sentence_transformers import Dialect
from .tensors import (
    Head,
    TensorShape,
    bert_tensors,
    deberta_tensors,
    draw,
    fan_in_deviation,
    head_tensors,
    modernbert_tensors,
)
from .tokenizer_files import TokenizerKind, WrittenTokenizer, write_tokenizer

__all__ = ["EncoderFamily", "EncoderHead", "EncoderShape", "write_encoder"]

EncoderFamily = Literal["bert", "minilm", "roberta", "xlm_roberta", "modernbert", "mmbert", "deberta"]
EncoderHead = Literal["embedding", "sequence", "token", "reranker", "nli"]

_MMBERT_VOCABULARY = 256_000
"""Rows of the embedding by which mmBERT is recognised; its tokenizer here uses the first few hundred."""

_LABELS: Mapping[EncoderHead, tuple[str, ...]] = {
    "embedding": (),
    "sequence": ("business", "law", "health", "other"),
    "token": ("O", "B-PER", "I-PER", "B-LOC", "I-LOC"),
    "reranker": ("LABEL_0",),
    "nli": ("entailment", "neutral", "contradiction"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderShape:
    """The shape of a tiny encoder.

    :param positions: tokens it can read, special ones included.
    :param spread: standard deviation of queries and keys; attention scores have about its square, so that from 1.5 on
        attention is peaked.
    """

    hidden: int = 32
    layers: int = 4
    heads: int = 4
    intermediate: int = 48
    positions: int = 64
    spread: float = 2.0


_SHAPES: Mapping[EncoderFamily, EncoderShape] = {
    "minilm": EncoderShape(hidden=384, layers=2, heads=12, intermediate=192),
    "mmbert": EncoderShape(hidden=16, heads=2, intermediate=24),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """What sets a family apart.

    :param classes: the prefix of its class names; ``inner`` that of its encoder's tensors under a head.
    :param sliding_base: the base of rotary positions in layers with a window, None where there are none.
    """

    classes: str
    inner: str
    tokenizer: TokenizerKind
    config: Callable[[EncoderShape, WrittenTokenizer], dict[str, Any]]
    sliding_base: float | None = None


def write_encoder(
    folder: Path,
    family: EncoderFamily,
    *,
    head: EncoderHead = "embedding",
    shape: EncoderShape | None = None,
    labels: Sequence[str] | None = None,
    problem_type: str | None = None,
    config: Mapping[str, Any] | None = None,
    dialect: Dialect = "current",
    seed: int = 0,
) -> Path:
    """Write a random encoder as HF transformers saves it, with its tokenizer; returns the folder.

    A reranker is a head with one output and the activation of a CrossEncoder in its configuration; ``nli`` is a head
    over the three labels of natural language inference.

    :param labels: names in index order; those of a head are made up where none are given.
    :param config: overrides of ``config.json``; the weights follow them.
    :param dialect: of ModernBERT's rotary positions and layer types, and of a reranker's activation.
    """
    from safetensors.numpy import save_file

    shape = shape or _SHAPES.get(family, EncoderShape())
    line = _LINES[family]
    folder.mkdir(parents=True, exist_ok=True)
    names = tuple(labels) if labels is not None else _LABELS[head]
    tokenizer = write_tokenizer(folder, line.tokenizer, max_tokens=shape.positions)
    stated = line.config(shape, tokenizer)
    if line.sliding_base is not None:
        stated |= _alternation(shape.layers, line.sliding_base, dialect=dialect)
    stated |= _head_config(line, head, names, dialect=dialect)
    if problem_type is not None:
        stated["problem_type"] = problem_type
    stated |= dict(config or {})
    (folder / "config.json").write_text(json.dumps(stated, indent=1), encoding="utf-8")
    shapes = _tensors(line, stated, _kind(head), labels=len(names))
    tensors = draw(shapes, seed=seed, deviation=fan_in_deviation(shape.spread))
    save_file(tensors, str(folder / "model.safetensors"))
    return folder


def _kind(head: EncoderHead) -> Head:
    return head if head in ("embedding", "token") else "sequence"


def _tensors(line: _Line, config: Mapping[str, Any], head: Head, *, labels: int) -> Iterator[TensorShape]:
    prefix = "" if head == "embedding" else line.inner
    if line.classes == "ModernBert":
        yield from modernbert_tensors(config, prefix=prefix)
    elif line.classes == "DebertaV2":
        yield from deberta_tensors(config, prefix=prefix)
    else:
        pooler = head == "embedding" or (head == "sequence" and line.classes == "Bert")
        yield from bert_tensors(config, prefix=prefix, pooler=pooler)
    yield from head_tensors(config, head, labels=labels)


def _head_config(line: _Line, head: EncoderHead, labels: Sequence[str], *, dialect: Dialect) -> dict[str, Any]:
    suffix = {"embedding": "Model", "token": "ForTokenClassification"}.get(head, "ForSequenceClassification")
    found: dict[str, Any] = {"architectures": [line.classes + suffix]}
    if labels:
        found["id2label"] = {str(index): label for index, label in enumerate(labels)}
        found["label2id"] = {label: index for index, label in enumerate(labels)}
    if head == "reranker":
        activation = "torch.nn.modules.activation.Sigmoid"
        older = {"sbert_ce_default_activation_function": activation}
        found |= older if dialect == "older" else {"sentence_transformers": {"activation_fn": activation}}
    return found


def _sizes(shape: EncoderShape, tokenizer: WrittenTokenizer) -> dict[str, Any]:
    return {
        "vocab_size": tokenizer.vocabulary,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.intermediate,
        "max_position_embeddings": shape.positions,
        "pad_token_id": tokenizer.pad,
    }


def _bert(shape: EncoderShape, tokenizer: WrittenTokenizer) -> dict[str, Any]:
    own = {"model_type": "bert", "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
    return _sizes(shape, tokenizer) | own


def _roberta(shape: EncoderShape, tokenizer: WrittenTokenizer) -> dict[str, Any]:
    return _sizes(shape, tokenizer) | {
        "model_type": "roberta",
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "hidden_act": "gelu",
        "max_position_embeddings": shape.positions + tokenizer.pad + 1,
        "bos_token_id": tokenizer.begin,
        "eos_token_id": tokenizer.end,
    }


def _xlm_roberta(shape: EncoderShape, tokenizer: WrittenTokenizer) -> dict[str, Any]:
    return _roberta(shape, tokenizer) | {"model_type": "xlm-roberta"}


def _deberta(shape: EncoderShape, tokenizer: WrittenTokenizer) -> dict[str, Any]:
    """The settings of ``microsoft/deberta-v3-base``, with fewer buckets so that short texts reach the coarse ones."""
    return _sizes(shape, tokenizer) | {
        "model_type": "deberta-v2",
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-7,
        "hidden_act": "gelu",
        "relative_attention": True,
        "pos_att_type": "p2c|c2p",
        "position_buckets": 8,
        "max_relative_positions": -1,
        "position_biased_input": False,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pooler_dropout": 0,
        "pooler_hidden_act": "gelu",
        "pooler_hidden_size": shape.hidden,
    }


def _modernbert(shape: EncoderShape, tokenizer: WrittenTokenizer) -> dict[str, Any]:
    """The settings of ``answerdotai/ModernBERT-base``, with a window of 8 so that short texts are longer."""
    return _sizes(shape, tokenizer) | {
        "model_type": "modernbert",
        "bos_token_id": tokenizer.begin,
        "cls_token_id": tokenizer.begin,
        "eos_token_id": tokenizer.end,
        "sep_token_id": tokenizer.end,
        "hidden_activation": "gelu",
        "norm_eps": 1e-5,
        "norm_bias": False,
        "attention_bias": False,
        "mlp_bias": False,
        "classifier_bias": False,
        "classifier_activation": "gelu",
        "classifier_pooling": "mean",
        "local_attention": 8,
    }


def _mmbert(shape: EncoderShape, tokenizer: WrittenTokenizer) -> dict[str, Any]:
    return _modernbert(shape, tokenizer) | {"vocab_size": _MMBERT_VOCABULARY}


def _alternation(layers: int, sliding: float, *, dialect: Dialect) -> dict[str, Any]:
    """Every third layer attends to the whole text; rotary positions have a base for either kind of layer."""
    full = 160_000.0
    if dialect == "older":
        return {"global_attn_every_n_layers": 3, "global_rope_theta": full, "local_rope_theta": sliding}
    return {
        "layer_types": ["sliding_attention" if index % 3 else "full_attention" for index in range(layers)],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": full},
            "sliding_attention": {"rope_type": "default", "rope_theta": sliding},
        },
    }


_LINES: Mapping[EncoderFamily, _Line] = {
    "bert": _Line(classes="Bert", inner="bert.", tokenizer="bert", config=_bert),
    "minilm": _Line(classes="Bert", inner="bert.", tokenizer="bert", config=_bert),
    "roberta": _Line(classes="Roberta", inner="roberta.", tokenizer="roberta", config=_roberta),
    "xlm_roberta": _Line(classes="XLMRoberta", inner="roberta.", tokenizer="xlm_roberta", config=_xlm_roberta),
    "modernbert": _Line(
        classes="ModernBert", inner="model.", tokenizer="modernbert", config=_modernbert, sliding_base=10_000.0
    ),
    "mmbert": _Line(classes="ModernBert", inner="model.", tokenizer="gemma", config=_mmbert, sliding_base=160_000.0),
    "deberta": _Line(classes="DebertaV2", inner="deberta.", tokenizer="deberta", config=_deberta),
}
