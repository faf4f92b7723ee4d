"""The exact forward of BERT-family encoders over packed tokens: no padding, no mask.

The architecture is that of Devlin et al. 2018 (post-norm), as HF transformers' ``BertModel`` lays out its weights.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor
from vsr_core.errors import CheckpointError

from .attention import EqualRun, attend, equal_runs
from .linear import Activation, Linear, Norm, padded_rows, prepack, prepack_supported
from .weights import StrictTensors

__all__ = ["BertConfig", "BertEncoder"]

_PROBE = "embeddings.word_embeddings.weight"
_OTHER_HEADS = ("pooler.", "cls.", "classifier.", "embeddings.position_ids")
"""What checkpoints hold beside the encoder: the heads they were trained with, which no embedding needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BertConfig:
    """The shape of an encoder, from ``config.json``."""

    hidden_size: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    types: int
    eps: float
    activation: Activation

    @classmethod
    def read(cls, config: Mapping[str, Any], where: str) -> Self:
        """The shape a ``config.json`` states.

        :raises CheckpointError: a value is missing, of the wrong type, or one this forward does not compute.
        """
        activation = config.get("hidden_act", "gelu")
        if activation not in ("gelu", "gelu_new", "relu"):
            raise CheckpointError(f"{where}: hidden_act {activation!r} is not computed here")
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise CheckpointError(f"{where}: only absolute position embeddings are computed here")
        if config.get("is_decoder"):
            raise CheckpointError(f"{where}: is_decoder is set; a decoder is no encoder")
        shape = cls(
            hidden_size=_count(config, "hidden_size", where),
            layers=_count(config, "num_hidden_layers", where),
            heads=_count(config, "num_attention_heads", where),
            intermediate=_count(config, "intermediate_size", where),
            vocabulary=_count(config, "vocab_size", where),
            positions=_count(config, "max_position_embeddings", where),
            types=_count(config, "type_vocab_size", where),
            eps=_epsilon(config, where),
            activation=activation,
        )
        if shape.hidden_size % shape.heads:
            raise CheckpointError(f"{where}: hidden_size {shape.hidden_size} is no multiple of {shape.heads} heads")
        return shape


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: Linear
    attention_out: Linear
    attention_norm: Norm
    up: Linear
    down: Linear
    output_norm: Norm


@dataclass(frozen=True, slots=True)
class _Embeddings:
    words: Tensor
    positions: Tensor
    types: Tensor
    norm: Norm


class BertEncoder:
    """Prepared weights that never change; :meth:`forward` is safe to call from several threads.

    :param dtype: ``torch.float32`` or ``torch.bfloat16``; the weights and the computation.
    :raises CheckpointError: the weights are not exactly those the configuration describes.
    """

    def __init__(self, config: BertConfig, tensors: Mapping[str, Tensor], *, dtype: torch.dtype, where: str) -> None:
        self.config = config
        self.dtype = dtype
        source = _Source(StrictTensors(tensors, where=where, prefixes=("bert.",), probe=_PROBE), dtype)
        with torch.inference_mode():
            self._embeddings = _read_embeddings(source, config)
            self._layers = tuple(_read_layer(source, config, index) for index in range(config.layers))
        source.tensors.refuse_others(allowed=_OTHER_HEADS)
        self.bytes = source.bytes

    def forward(self, ids: Tensor, type_ids: Tensor, offsets: Tensor, *, exits: Collection[int]) -> dict[int, Tensor]:
        """The hidden states ``[tokens, hidden]`` after each of the layers ``exits``, counted from 1.

        Neighbouring sequences of equal length share one attention call, so a batch sorted by length runs fastest;
        the result does not depend on the order.

        :param ids: token ids, int ``[tokens]``; ``type_ids`` likewise; ``offsets`` is int ``[sequences + 1]``.
        """
        with torch.inference_mode():
            lengths = offsets.diff()
            runs = equal_runs(lengths.tolist())
            x = self._embed(ids, type_ids, offsets, lengths)
            states: dict[int, Tensor] = {}
            for depth, layer in enumerate(self._layers[: max(exits)], start=1):
                x = self._layer(layer, x, runs)
                if depth in exits:
                    states[depth] = x[: ids.numel()]
            return states

    def _embed(self, ids: Tensor, type_ids: Tensor, offsets: Tensor, lengths: Tensor) -> Tensor:
        table, tokens = self._embeddings, ids.numel()
        positions = torch.arange(tokens) - torch.repeat_interleave(offsets[:-1], lengths)
        extra = (0, padded_rows(tokens) - tokens)
        x = F.embedding(F.pad(ids, extra), table.words)
        x += F.embedding(F.pad(type_ids, extra), table.types)
        x += F.embedding(F.pad(positions, extra), table.positions)
        return table.norm.apply(x)

    def _layer(self, layer: _Layer, x: Tensor, runs: Sequence[EqualRun]) -> Tensor:
        context = attend(layer.qkv.apply(x), runs, heads=self.config.heads)
        x = layer.attention_norm.apply(layer.attention_out.apply_residual(context, x))
        inner = layer.up.apply_activation(x, self.config.activation)
        return layer.output_norm.apply(layer.down.apply_residual(inner, x))


class _Source:
    """Takes tensors in the target dtype, prepacked where that is to be had, and counts their bytes."""

    def __init__(self, tensors: StrictTensors, dtype: torch.dtype) -> None:
        self.tensors = tensors
        self.bytes = 0
        self._dtype = dtype
        self._prepack = prepack_supported(dtype)

    def get(self, name: str, shape: tuple[int, ...]) -> Tensor:
        tensor = self.tensors.take(name, shape).to(self._dtype).contiguous()
        self.bytes += tensor.numel() * tensor.element_size()
        return tensor

    def linear(self, names: Sequence[str], out: int, width: int) -> Linear:
        weight = torch.cat([self.get(f"{name}.weight", (out, width)) for name in names])
        bias = torch.cat([self.get(f"{name}.bias", (out,)) for name in names])
        return Linear(prepack(weight) if self._prepack else weight, bias, self._prepack)

    def norm(self, name: str, size: int, eps: float) -> Norm:
        return Norm(self.get(f"{name}.weight", (size,)), self.get(f"{name}.bias", (size,)), eps)


def _read_layer(source: _Source, config: BertConfig, index: int) -> _Layer:
    layer, hidden, inner = f"encoder.layer.{index}.", config.hidden_size, config.intermediate
    attention = f"{layer}attention."
    return _Layer(
        qkv=source.linear([f"{attention}self.{name}" for name in ("query", "key", "value")], hidden, hidden),
        attention_out=source.linear([f"{attention}output.dense"], hidden, hidden),
        attention_norm=source.norm(f"{attention}output.LayerNorm", hidden, config.eps),
        up=source.linear([f"{layer}intermediate.dense"], inner, hidden),
        down=source.linear([f"{layer}output.dense"], hidden, inner),
        output_norm=source.norm(f"{layer}output.LayerNorm", hidden, config.eps),
    )


def _read_embeddings(source: _Source, config: BertConfig) -> _Embeddings:
    hidden = config.hidden_size
    return _Embeddings(
        words=source.get(_PROBE, (config.vocabulary, hidden)),
        positions=source.get("embeddings.position_embeddings.weight", (config.positions, hidden)),
        types=source.get("embeddings.token_type_embeddings.weight", (config.types, hidden)),
        norm=source.norm("embeddings.LayerNorm", hidden, config.eps),
    )


def _epsilon(config: Mapping[str, Any], where: str) -> float:
    value = config.get("layer_norm_eps", 1e-12)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise CheckpointError(f"{where}: layer_norm_eps must be a number from 0 to 1, not {value!r}")
    return float(value)


def _count(config: Mapping[str, Any], key: str, where: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CheckpointError(f"{where}: {key} must be a positive whole number, not {value!r}")
    return value
