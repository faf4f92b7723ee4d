"""The exact forward of BERT-family encoders over packed tokens: no padding, no mask.

The architecture is that of Devlin et al. 2018 (post-norm), as transformers' ``BertModel`` lays out its weights;
RoBERTa (Liu et al. 2019) differs in where its positions begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor
from vsr_core.errors import CheckpointError
from vsr_core.local import BatchShape, LinearSite, LowRank

from .attention import attend, attention_bytes
from .changes import LinearName, RowChanges, activated, changed, join
from .fields import ConfigFields
from .linear import Activation, Linear, Norm
from .packed import Packed, Step, row_blocks
from .packing import Packing
from .weights import StrictTensors

__all__ = ["BERT_PROBE", "BertConfig", "BertEncoder"]

BERT_PROBE = "embeddings.word_embeddings.weight"
"""A tensor that every checkpoint of the family has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BertConfig:
    """The shape of an encoder, from ``config.json``.

    :param padding: for RoBERTa, the id of the padding token, after which its positions begin; None for BERT.
    """

    hidden_size: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    types: int
    eps: float
    activation: Activation
    padding: int | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any], where: str, *, roberta: bool = False) -> Self:
        """The shape a ``config.json`` states.

        :raises CheckpointError: a value is missing, of the wrong type, or one this forward does not compute.
        """
        fields = ConfigFields(config, where)
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise CheckpointError(f"{where}: only absolute position embeddings are computed here")
        if config.get("is_decoder"):
            raise CheckpointError(f"{where}: is_decoder is set; a decoder is no encoder")
        hidden = fields.count("hidden_size")
        positions, padding = (
            fields.count("max_position_embeddings"),
            fields.integer("pad_token_id", 1) if roberta else 0,
        )
        if roberta and padding + 1 >= positions:
            raise fields.refusal("pad_token_id", f"{padding} leaves none of {positions} positions to a text")
        return cls(
            hidden_size=hidden,
            layers=fields.count("num_hidden_layers"),
            heads=fields.heads(hidden),
            intermediate=fields.count("intermediate_size"),
            vocabulary=fields.count("vocab_size"),
            positions=positions,
            types=fields.count("type_vocab_size"),
            eps=fields.epsilon("layer_norm_eps", 1e-12),
            activation=fields.activation("hidden_act"),
            padding=padding if roberta else None,
        )

    @property
    def max_tokens(self) -> int:
        """The longest sequence there are positions for."""
        return self.positions if self.padding is None else self.positions - self.padding - 1


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
    """A BERT or RoBERTa encoder.

    :param dtype: ``torch.float32`` or ``torch.bfloat16``; the weights and the computation.
    :raises CheckpointError: the weights are not those the configuration describes.
    """

    def __init__(self, config: BertConfig, tensors: StrictTensors, *, dtype: torch.dtype) -> None:
        self.config = config
        self.hidden_size = config.hidden_size
        self.layers = config.layers
        self.sites = bert_sites(config)
        self.dtype = dtype
        source = Packing(tensors, dtype)
        with torch.inference_mode():
            self._embeddings = _read_embeddings(source, config)
            self._layers = tuple(_read_layer(source, config, index) for index in range(config.layers))
        self.bytes = source.bytes

    def embed(self, packed: Packed) -> Tensor:
        """The sum of the embeddings, normalised."""
        table = self._embeddings
        x = F.embedding(packed.padded(packed.ids), table.words)
        if len(table.types) == 1:  # transformers never shows such a model the type ids
            x += table.types
        else:
            x += F.embedding(packed.padded(packed.type_ids), table.types)
        x += F.embedding(packed.padded(self._positions(packed)), table.positions)
        return table.norm.apply(x)

    def steps(self, packed: Packed) -> Step:
        """Every layer alike."""
        return lambda index, x, changes: self._layer(self._layers[index], x, packed, changes)

    def leave(self, states: Tensor) -> Tensor:
        """The states themselves, which each layer ends in normalised."""
        return states

    def adapt(self, changes: Mapping[str, LowRank]) -> tuple[Mapping[LinearName, LowRank], ...]:
        """Query, key and value are one layer here."""
        return tuple(self._adapt(index, changes) for index in range(self.layers))

    def plan_bytes(self, shape: BatchShape) -> int:
        """The states of one layer and what attention needs."""
        config, element = self.config, torch.finfo(self.dtype).bits // 8
        rows = shape.tokens + shape.tokens // 8 + 64
        return (
            rows * config.hidden_size * (8 * element + 4)
            + min(rows, 1024) * config.intermediate * 2 * element
            + attention_bytes(shape.longest, heads=config.heads)
        )

    def _positions(self, packed: Packed) -> Tensor:
        """From 0; in RoBERTa counted from after the padding id, which has that position itself wherever it stands."""
        if self.config.padding is None:
            return packed.positions()
        real = (packed.ids != self.config.padding).long()
        counted = real.cumsum(0)
        before = F.pad(counted, (1, 0))[packed.offsets[:-1]]
        return (counted - torch.repeat_interleave(before, packed.offsets.diff())) * real + self.config.padding

    def _layer(self, layer: _Layer, x: Tensor, packed: Packed, changes: RowChanges | None) -> Tensor:
        qkv = changed(layer.qkv.apply(x), x, "qkv", changes)
        context = attend(qkv, packed.runs, heads=self.config.heads)
        mixed = changed(layer.attention_out.apply_residual(context, x), context, "attention_out", changes)
        x = layer.attention_norm.apply(mixed)
        for rows in row_blocks(len(x)):
            part = x[rows]
            inner = activated(layer.up, part, self.config.activation, changes, first=rows.start)
            whole = layer.down.apply_residual(inner, part)
            part.copy_(layer.output_norm.apply(changed(whole, inner, "down", changes, first=rows.start)))
        return x

    def _adapt(self, index: int, changes: Mapping[str, LowRank]) -> Mapping[LinearName, LowRank]:
        hidden, layer = self.hidden_size, f"encoder.layer.{index}."
        names = [f"{layer}attention.self.{name}" for name in ("query", "key", "value")]
        found: dict[LinearName, LowRank | None] = {
            "qkv": join([(changes.get(name), hidden) for name in names], width=hidden),
            "attention_out": changes.get(f"{layer}attention.output.dense"),
            "inner": changes.get(f"{layer}intermediate.dense"),
            "down": changes.get(f"{layer}output.dense"),
        }
        return {name: change for name, change in found.items() if change is not None}


def bert_sites(config: BertConfig) -> tuple[LinearSite, ...]:
    """The linear layers of an encoder, by the names its checkpoints give them."""
    hidden, inner = config.hidden_size, config.intermediate
    each = (
        ("attention.self.query", hidden, hidden),
        ("attention.self.key", hidden, hidden),
        ("attention.self.value", hidden, hidden),
        ("attention.output.dense", hidden, hidden),
        ("intermediate.dense", inner, hidden),
        ("output.dense", hidden, inner),
    )
    return tuple(
        LinearSite(f"encoder.layer.{index}.{name}", out, width, index + 1)
        for index in range(config.layers)
        for name, out, width in each
    )


def _read_layer(source: Packing, config: BertConfig, index: int) -> _Layer:
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


def _read_embeddings(source: Packing, config: BertConfig) -> _Embeddings:
    hidden = config.hidden_size
    return _Embeddings(
        words=source.get(BERT_PROBE, (config.vocabulary, hidden)),
        positions=source.get("embeddings.position_embeddings.weight", (config.positions, hidden)),
        types=source.get("embeddings.token_type_embeddings.weight", (config.types, hidden)),
        norm=source.norm("embeddings.LayerNorm", hidden, config.eps),
    )
