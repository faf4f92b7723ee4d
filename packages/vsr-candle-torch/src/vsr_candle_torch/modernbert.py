"""The exact forward of ModernBERT and mmBERT over packed tokens.

The architecture is that of Warner et al. 2024 (pre-norm, rotary positions, gated feed-forward, every third layer
looking everywhere and the others near by), as transformers' ``ModernBertModel`` lays out its weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor
from vsr_core.errors import CheckpointError
from vsr_core.local import BatchShape, LinearSite, LowRank

from .attention import attend, attention_bytes
from .changes import LinearName, RowChanges, changed
from .fields import ConfigFields
from .linear import Activation, Linear, Norm, activate
from .packed import Packed, Step, row_blocks
from .packing import Packing
from .rotary import RotaryConfig, interleave, rotate_, rotation
from .weights import StrictTensors

__all__ = ["MODERNBERT_PROBE", "ModernBertConfig", "ModernBertEncoder"]

MODERNBERT_PROBE = "embeddings.tok_embeddings.weight"
"""A tensor that every checkpoint of the family has."""

Reach = Literal["full_attention", "sliding_attention"]

_THETA: Mapping[Reach, float] = {"full_attention": 160_000.0, "sliding_attention": 10_000.0}
_OLDER_THETA: Mapping[Reach, str] = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernBertConfig:
    """The shape of an encoder, from ``config.json`` in either dialect.

    :param reaches: for each layer, whether it looks everywhere or within the window.
    :param window: how far to either side a token looks in a windowed layer.
    """

    hidden_size: int
    reaches: tuple[Reach, ...]
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    eps: float
    activation: Activation
    window: int
    rotary: Mapping[Reach, RotaryConfig]
    attention_bias: bool
    mlp_bias: bool
    norm_bias: bool

    @classmethod
    def read(cls, config: Mapping[str, Any], where: str) -> Self:
        """The shape a ``config.json`` states.

        :raises CheckpointError: a value is missing, of the wrong type, or one this forward does not compute.
        """
        fields = ConfigFields(config, where)
        hidden = fields.count("hidden_size")
        heads = fields.heads(hidden)
        if hidden // heads % 2:
            raise CheckpointError(f"{where}: heads of {hidden // heads} features cannot be turned in pairs")
        return cls(
            hidden_size=hidden,
            reaches=_reaches(fields),
            heads=heads,
            intermediate=fields.count("intermediate_size"),
            vocabulary=fields.count("vocab_size"),
            positions=fields.count("max_position_embeddings"),
            eps=fields.epsilon("norm_eps", 1e-5),
            activation=fields.activation("hidden_activation"),
            window=fields.integer("local_attention", 128) // 2,
            rotary=_rotary(fields),
            attention_bias=fields.flag("attention_bias", default=False),
            mlp_bias=fields.flag("mlp_bias", default=False),
            norm_bias=fields.flag("norm_bias", default=False),
        )

    @property
    def max_tokens(self) -> int:
        """The longest sequence there are positions for."""
        return self.positions


def _reaches(fields: ConfigFields) -> tuple[Reach, ...]:
    layers, stated = fields.count("num_hidden_layers"), fields.values.get("layer_types")
    if stated is None:
        every = fields.integer("global_attn_every_n_layers", 3) or 1
        return tuple("sliding_attention" if index % every else "full_attention" for index in range(layers))
    known = isinstance(stated, list) and len(stated) == layers and all(kind in _THETA for kind in stated)
    if not known:
        raise fields.refusal("layer_types", f"must name one of {', '.join(_THETA)} for each of {layers} layers")
    return tuple(cast("list[Reach]", stated))


def _rotary(fields: ConfigFields) -> Mapping[Reach, RotaryConfig]:
    """From ``rope_parameters`` by kind of layer, or from the older ``*_rope_theta`` and ``rope_scaling``."""
    stated, scaling = fields.values.get("rope_parameters"), fields.values.get("rope_scaling")
    for key, value in (("rope_parameters", stated), ("rope_scaling", scaling)):
        if value is not None and not isinstance(value, dict):
            raise fields.refusal(key, f"must be an object, not {value!r}")
    positions = fields.count("max_position_embeddings")
    found: dict[Reach, RotaryConfig] = {}
    for reach, default in _THETA.items():
        mine = (stated or {}).get(reach) or {}
        if not isinstance(mine, dict):
            raise fields.refusal("rope_parameters", f"must hold an object for {reach}, not {mine!r}")
        theta = fields.positive(_OLDER_THETA[reach], default)
        where = f"{fields.where}: rope_parameters.{reach}"
        found[reach] = RotaryConfig.read({**mine, **(scaling or {})}, where, theta=theta, positions=positions)
    return found


@dataclass(frozen=True, slots=True)
class _Layer:
    attention_norm: Norm | None
    qkv: Linear
    attention_out: Linear
    mlp_norm: Norm
    up: Linear
    gate: Linear
    down: Linear
    reach: Reach


class ModernBertEncoder:
    """A ModernBERT or mmBERT encoder. The final norm is applied at every exit, native or earlier.

    :param dtype: ``torch.float32`` or ``torch.bfloat16``; the weights and the computation.
    :raises CheckpointError: the weights are not those the configuration describes.
    """

    def __init__(self, config: ModernBertConfig, tensors: StrictTensors, *, dtype: torch.dtype) -> None:
        self.config = config
        self.hidden_size = config.hidden_size
        self.layers = len(config.reaches)
        self.sites = modernbert_sites(config)
        self.dtype = dtype
        source = Packing(tensors, dtype)
        hidden = config.hidden_size
        with torch.inference_mode():
            self._words = source.get(MODERNBERT_PROBE, (config.vocabulary, hidden))
            self._norm = source.norm("embeddings.norm", hidden, config.eps, bias=config.norm_bias)
            self._layers = tuple(_read_layer(source, config, index) for index in range(self.layers))
            self._final_norm = source.norm("final_norm", hidden, config.eps, bias=config.norm_bias)
            self._turns = {
                reach: rotation(rotary, width=hidden // config.heads, positions=config.positions)
                for reach, rotary in config.rotary.items()
            }
        self.bytes = source.bytes

    def embed(self, packed: Packed) -> Tensor:
        """The token embeddings, normalised; positions come in with attention."""
        return self._norm.apply(F.embedding(packed.padded(packed.ids), self._words))

    def steps(self, packed: Packed) -> Step:
        """Layers, each with the rotation of its kind."""
        positions = packed.padded(packed.positions())
        turns = {reach: table[positions] for reach, table in self._turns.items()}

        def step(index: int, x: Tensor, changes: RowChanges | None) -> Tensor:
            layer = self._layers[index]
            return self._layer(layer, x, packed, turns[layer.reach], changes)

        return step

    def leave(self, states: Tensor) -> Tensor:
        """The states after the final norm."""
        return self._final_norm.apply(states)

    def adapt(self, changes: Mapping[str, LowRank]) -> tuple[Mapping[LinearName, LowRank], ...]:
        """Queries and keys have their features in another order here."""
        return tuple(self._adapt(index, changes) for index in range(self.layers))

    def plan_bytes(self, shape: BatchShape) -> int:
        """The states of one layer, the rotations, and what attention needs."""
        config, element = self.config, torch.finfo(self.dtype).bits // 8
        rows = shape.tokens + shape.tokens // 8 + 64
        scores = max(
            attention_bytes(shape.longest, heads=config.heads),
            attention_bytes(shape.longest, heads=config.heads, window=config.window),
        )
        turned = 0 if self.dtype == torch.float32 else 8 * config.hidden_size
        return (
            rows * (config.hidden_size * (7 * element + 4) + turned + 8 * config.hidden_size // config.heads)
            + min(rows, 1024) * config.intermediate * 3 * element
            + scores
        )

    def _layer(self, layer: _Layer, x: Tensor, packed: Packed, turns: Tensor, changes: RowChanges | None) -> Tensor:
        window = self.config.window if layer.reach == "sliding_attention" else None
        heads = self.config.heads
        normed = x if layer.attention_norm is None else layer.attention_norm.apply(x)
        qkv = changed(layer.qkv.apply(normed), normed, "qkv", changes)
        rotate_(qkv, turns, heads=heads)
        context = attend(qkv, packed.runs, heads=heads, window=window)
        del qkv, normed
        x = changed(layer.attention_out.apply_residual(context, x), context, "attention_out", changes)
        for rows in row_blocks(len(x)):
            part, first = x[rows], rows.start
            normed = layer.mlp_norm.apply(part)
            inner = self._inner(layer, normed, changes, first=first)
            part.copy_(changed(layer.down.apply_residual(inner, part), inner, "down", changes, first=first))
        return x

    def _inner(self, layer: _Layer, x: Tensor, changes: RowChanges | None, *, first: int) -> Tensor:
        """The gated part between the two products of the feed-forward."""
        activation = self.config.activation
        if changes is None or not changes.touches("inner"):
            return layer.up.apply_activation(x, activation).mul_(layer.gate.apply(x))
        up, gate = layer.up.apply(x), layer.gate.apply(x)
        changes.add_("inner", (up, gate), x, first=first)
        return activate(up, activation).mul_(gate)

    def _adapt(self, index: int, changes: Mapping[str, LowRank]) -> Mapping[LinearName, LowRank]:
        layer, heads = f"layers.{index}.", self.config.heads
        found: dict[LinearName, LowRank] = {}
        if (qkv := changes.get(f"{layer}attn.Wqkv")) is not None:
            parts = torch.from_numpy(qkv.b).chunk(3)
            turned = torch.cat([interleave(parts[0], heads), interleave(parts[1], heads), parts[2]])
            found["qkv"] = LowRank(qkv.a, turned.numpy())
        if (out := changes.get(f"{layer}attn.Wo")) is not None:
            found["attention_out"] = out
        if (inner := changes.get(f"{layer}mlp.Wi")) is not None:
            found["inner"] = inner
        if (down := changes.get(f"{layer}mlp.Wo")) is not None:
            found["down"] = down
        return found


def modernbert_sites(config: ModernBertConfig) -> tuple[LinearSite, ...]:
    """The linear layers of an encoder, by the names its checkpoints give them."""
    hidden, inner = config.hidden_size, config.intermediate
    each = (
        ("attn.Wqkv", 3 * hidden, hidden),
        ("attn.Wo", hidden, hidden),
        ("mlp.Wi", 2 * inner, hidden),
        ("mlp.Wo", hidden, inner),
    )
    return tuple(
        LinearSite(f"layers.{index}.{name}", out, width, index + 1)
        for index in range(len(config.reaches))
        for name, out, width in each
    )


def _read_layer(source: Packing, config: ModernBertConfig, index: int) -> _Layer:
    layer, hidden, inner = f"layers.{index}.", config.hidden_size, config.intermediate
    up, gate = _halves(source, f"{layer}mlp.Wi", (2 * inner, hidden), bias=config.mlp_bias)
    has_norm = index > 0  # the embeddings were normalised already
    return _Layer(
        attention_norm=source.norm(f"{layer}attn_norm", hidden, config.eps, bias=config.norm_bias)
        if has_norm
        else None,
        qkv=_turnable(source, f"{layer}attn.Wqkv", config),
        attention_out=source.linear([f"{layer}attn.Wo"], hidden, hidden, bias=config.attention_bias),
        mlp_norm=source.norm(f"{layer}mlp_norm", hidden, config.eps, bias=config.norm_bias),
        up=up,
        gate=gate,
        down=source.linear([f"{layer}mlp.Wo"], hidden, inner, bias=config.mlp_bias),
        reach=config.reaches[index],
    )


def _turnable(source: Packing, name: str, config: ModernBertConfig) -> Linear:
    """Query, key and value as one layer, with the features of queries and keys in the order rotation wants."""
    hidden = config.hidden_size
    parts = _parts(source, name, (3 * hidden, hidden), bias=config.attention_bias, count=3)
    turned = [
        [interleave(tensor, config.heads) if place < 2 else tensor for place, tensor in enumerate(tensors)]
        for tensors in parts
    ]
    return source.prepared(torch.cat(turned[0]), torch.cat(turned[1]) if len(turned) > 1 else None)


def _halves(source: Packing, name: str, shape: tuple[int, int], *, bias: bool) -> tuple[Linear, Linear]:
    parts = _parts(source, name, shape, bias=bias, count=2)
    first, second = (
        source.prepared(parts[0][place], parts[1][place] if len(parts) > 1 else None) for place in range(2)
    )
    return first, second


def _parts(source: Packing, name: str, shape: tuple[int, int], *, bias: bool, count: int) -> Sequence[Sequence[Tensor]]:
    """A weight, and its bias where it has one, each cut into ``count`` pieces of its rows."""
    taken = [source.tensors.take(f"{name}.weight", shape)]
    if bias:
        taken.append(source.tensors.take(f"{name}.bias", shape[:1]))
    return [tensor.chunk(count) for tensor in taken]
