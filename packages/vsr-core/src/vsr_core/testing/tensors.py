"""The tensors of encoders and their heads, named and shaped as HF transformers saves them, and random values for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..contract import FloatArray

__all__ = [
    "Head",
    "TensorShape",
    "bert_tensors",
    "deberta_tensors",
    "draw",
    "fan_in_deviation",
    "head_tensors",
    "modernbert_tensors",
]

Head = Literal["embedding", "sequence", "token"]
"""What stands on the encoder: nothing, a head over the text, or a head over its tokens."""


@dataclass(frozen=True, slots=True)
class TensorShape:
    """A tensor of a checkpoint.

    :param role: what its values have to be like. ``score`` makes queries and keys, ``output`` is the last of a head,
        ``place`` embeds what is the same in every text: positions and token types.
    """

    name: str
    shape: tuple[int, ...]
    role: Literal["linear", "score", "output", "embedding", "place", "bias", "norm"]


def draw(
    shapes: Iterable[TensorShape], *, seed: int, deviation: Callable[[TensorShape], float]
) -> dict[str, FloatArray]:
    """Random float32 values, in the order of the shapes: norms from 0.5 to 1.5, all else normal around zero.

    :param deviation: the standard deviation of a tensor that is no norm.
    """
    source = np.random.default_rng(seed)
    tensors: dict[str, FloatArray] = {}
    for tensor in shapes:
        if tensor.role == "norm":
            values = source.uniform(0.5, 1.5, tensor.shape)
        else:
            values = source.normal(0.0, deviation(tensor), tensor.shape)
        tensors[tensor.name] = values.astype(np.float32)
    return tensors


def bert_tensors(config: Mapping[str, Any], *, prefix: str = "", pooler: bool = True) -> Iterator[TensorShape]:
    """``BertModel``; RoBERTa and XLM-R have the same names. Devlin et al. 2018, post-norm.

    :param config: the content of ``config.json``.
    """
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    tables = f"{prefix}embeddings."
    yield TensorShape(f"{tables}word_embeddings.weight", (config["vocab_size"], hidden), "embedding")
    yield TensorShape(f"{tables}position_embeddings.weight", (config["max_position_embeddings"], hidden), "place")
    yield TensorShape(f"{tables}token_type_embeddings.weight", (config["type_vocab_size"], hidden), "place")
    yield from _norm(f"{prefix}embeddings.LayerNorm", hidden)
    if pooler:
        yield from _linear(f"{prefix}pooler.dense", hidden, hidden)
    for index in range(config["num_hidden_layers"]):
        yield from _post_norm_layer(f"{prefix}encoder.layer.{index}.", hidden, inner, suffix="")


def deberta_tensors(config: Mapping[str, Any], *, prefix: str = "") -> Iterator[TensorShape]:
    """``DebertaV2Model`` with the settings of version 3: shared relative embeddings, normalised. He et al. 2021."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    yield TensorShape(f"{prefix}embeddings.word_embeddings.weight", (config["vocab_size"], hidden), "embedding")
    yield from _norm(f"{prefix}embeddings.LayerNorm", hidden)
    for index in range(config["num_hidden_layers"]):
        yield from _post_norm_layer(f"{prefix}encoder.layer.{index}.", hidden, inner, suffix="_proj")
    distances = 2 * config["position_buckets"]
    yield TensorShape(f"{prefix}encoder.rel_embeddings.weight", (distances, hidden), "embedding")
    yield from _norm(f"{prefix}encoder.LayerNorm", hidden)


def modernbert_tensors(config: Mapping[str, Any], *, prefix: str = "") -> Iterator[TensorShape]:
    """``ModernBertModel``: pre-norm with gated feed-forward; its first layer has no norm before attention."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    norm_bias, attention_bias, mlp_bias = config["norm_bias"], config["attention_bias"], config["mlp_bias"]
    yield TensorShape(f"{prefix}embeddings.tok_embeddings.weight", (config["vocab_size"], hidden), "embedding")
    yield from _norm(f"{prefix}embeddings.norm", hidden, bias=norm_bias)
    for index in range(config["num_hidden_layers"]):
        layer = f"{prefix}layers.{index}."
        if index:
            yield from _norm(f"{layer}attn_norm", hidden, bias=norm_bias)
        yield from _linear(f"{layer}attn.Wqkv", 3 * hidden, hidden, bias=attention_bias, role="score")
        yield from _linear(f"{layer}attn.Wo", hidden, hidden, bias=attention_bias)
        yield from _norm(f"{layer}mlp_norm", hidden, bias=norm_bias)
        yield from _linear(f"{layer}mlp.Wi", 2 * inner, hidden, bias=mlp_bias)
        yield from _linear(f"{layer}mlp.Wo", hidden, inner, bias=mlp_bias)
    yield from _norm(f"{prefix}final_norm", hidden, bias=norm_bias)


def head_tensors(config: Mapping[str, Any], head: Head, *, labels: int) -> Iterator[TensorShape]:
    """What ``For...Classification`` has beside the encoder, by ``model_type``; the pooler of BERT is the encoder's."""
    hidden, kind = config["hidden_size"], config["model_type"]
    if head == "embedding":
        return
    if kind == "modernbert":
        yield from _linear("head.dense", hidden, hidden, bias=config["classifier_bias"])
        yield from _norm("head.norm", hidden, bias=config["norm_bias"])
    elif head == "sequence" and kind == "deberta-v2":
        yield from _linear("pooler.dense", hidden, hidden)
    elif head == "sequence" and kind in ("roberta", "xlm-roberta"):
        yield from _linear("classifier.dense", hidden, hidden)
        yield from _linear("classifier.out_proj", labels, hidden, role="output")
        return
    yield from _linear("classifier", labels, hidden, role="linear" if head == "token" else "output")


def fan_in_deviation(spread: float) -> Callable[[TensorShape], float]:
    """Deviations under which different texts stay different through the layers, and their logits lie apart.

    A linear layer turns inputs of deviation one into outputs of about one; queries and keys have ``spread``.
    """
    gains = {"linear": 0.9, "score": spread, "output": 3.0}
    others = {"embedding": 1.0, "place": 0.3, "bias": 0.1}

    def deviation(tensor: TensorShape) -> float:
        if tensor.role in gains:
            return gains[tensor.role] / math.sqrt(tensor.shape[1])
        return others[tensor.role]

    return deviation


def _post_norm_layer(layer: str, hidden: int, inner: int, *, suffix: str) -> Iterator[TensorShape]:
    attention = f"{layer}attention.self."
    yield from _linear(f"{attention}query{suffix}", hidden, hidden, role="score")
    yield from _linear(f"{attention}key{suffix}", hidden, hidden, role="score")
    yield from _linear(f"{attention}value{suffix}", hidden, hidden)
    yield from _linear(f"{layer}attention.output.dense", hidden, hidden)
    yield from _linear(f"{layer}intermediate.dense", inner, hidden)
    yield from _linear(f"{layer}output.dense", hidden, inner)
    yield from _norm(f"{layer}attention.output.LayerNorm", hidden)
    yield from _norm(f"{layer}output.LayerNorm", hidden)


def _linear(
    name: str, out: int, width: int, *, bias: bool = True, role: Literal["linear", "score", "output"] = "linear"
) -> Iterator[TensorShape]:
    yield TensorShape(f"{name}.weight", (out, width), role)
    if bias:
        yield TensorShape(f"{name}.bias", (out,), "bias")


def _norm(name: str, width: int, *, bias: bool = True) -> Iterator[TensorShape]:
    yield TensorShape(f"{name}.weight", (width,), "norm")
    if bias:
        yield TensorShape(f"{name}.bias", (width,), "bias")
