"""Rotary positions: the angles a checkpoint's configuration asks for, and turning queries and keys by them.

Su et al. 2021 (RoFormer); YaRN is Peng et al. 2023, with the names and defaults transformers gives its parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .fields import ConfigFields

__all__ = ["RotaryConfig", "interleave", "rotate_", "rotation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryConfig:
    """How far each position turns each pair of features.

    :param theta: base of the wave lengths.
    :param factor: how much the positions are stretched, 1.0 for none; by ``kind`` ``linear`` all alike, by ``yarn``
        the slow ones alone.
    :param scale: multiplies what is turned, queries and keys alike.
    :param original: positions the model was trained on before it was stretched.
    """

    theta: float
    kind: str = "default"
    factor: float = 1.0
    scale: float = 1.0
    original: int = 0
    beta_fast: float = 32.0
    beta_slow: float = 1.0

    @classmethod
    def read(cls, values: Mapping[str, Any], where: str, *, theta: float, positions: int) -> RotaryConfig:
        """Read the parameters of one kind of layer.

        :param theta: the base where the parameters have none; :param positions: ``max_position_embeddings``.
        :raises CheckpointError: a kind that is not computed here, or a parameter that is no number.
        """
        fields = ConfigFields(values, where)
        kind = values.get("rope_type", values.get("type", "default"))
        base = fields.positive("rope_theta", theta)
        if kind == "default":
            return cls(theta=base)
        if kind == "linear":
            return cls(theta=base, kind=kind, factor=fields.positive("factor", 1.0))
        if kind != "yarn":
            raise fields.refusal("rope_type", f"{kind!r} is not computed here")
        if not fields.flag("truncate", default=True):
            raise fields.refusal("truncate", "is false: transformers reads it elsewhere, so what is meant is not sure")
        known = values.get("original_max_position_embeddings") is not None
        original = fields.count("original_max_position_embeddings") if known else positions
        factor = fields.positive("factor", positions / original)
        return cls(
            theta=base,
            kind=kind,
            factor=factor,
            scale=_yarn_scale(fields, factor),
            original=original,
            beta_fast=fields.positive("beta_fast", 32.0),
            beta_slow=fields.positive("beta_slow", 1.0),
        )


def _yarn_scale(fields: ConfigFields, factor: float) -> float:
    def magnitude(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if fields.values.get("attention_factor") is not None:
        return fields.positive("attention_factor", 1.0)
    if fields.values.get("mscale") and fields.values.get("mscale_all_dim"):
        return magnitude(fields.positive("mscale", 1.0)) / magnitude(fields.positive("mscale_all_dim", 1.0))
    return magnitude(1.0)


def rotation(config: RotaryConfig, *, width: int, positions: int) -> Tensor:
    """The rotations of every position: complex64 ``[positions, width / 2]``.

    :param width: features of one attention head.
    """
    frequencies = _frequencies(config, width)
    angles = torch.outer(torch.arange(positions, dtype=torch.float32), frequencies)
    return torch.polar(torch.full_like(angles, config.scale), angles)


def _frequencies(config: RotaryConfig, width: int) -> Tensor:
    plain = 1.0 / config.theta ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    if config.kind == "default":
        return plain
    stretched = plain / config.factor
    if config.kind == "linear":
        return stretched
    low = max(math.floor(_dimension_of(config.beta_fast, config, width)), 0)
    high = min(math.ceil(_dimension_of(config.beta_slow, config, width)), width - 1)
    ramp = (torch.arange(width // 2, dtype=torch.float32) - low) / max(high - low, 0.001)
    kept = 1 - ramp.clamp(0, 1)
    return stretched * (1 - kept) + plain * kept


def _dimension_of(rotations: float, config: RotaryConfig, width: int) -> float:
    """The feature that turns that often over the original positions."""
    return width * math.log(config.original / (rotations * 2 * math.pi)) / (2 * math.log(config.theta))


def interleave(weight: Tensor, heads: int) -> Tensor:
    """Rows ``[heads * width, ...]`` of a query or key weight, so that the two features that turn together are neighbours.

    Checkpoints keep them half a head apart. Products of queries with keys are the same either way.
    """
    width = weight.shape[0] // heads
    return weight.view(heads, 2, width // 2, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)


def rotate_(qkv: Tensor, turns: Tensor, *, heads: int) -> None:
    """Turn queries and keys in place, in float32.

    :param qkv: ``[rows, 3 * hidden]`` from weights that were interleaved.
    :param turns: complex64 ``[rows, width / 2]``, the rotation of each row's position.
    """
    both = qkv[:, : qkv.shape[1] // 3 * 2]
    wide = both if both.dtype == torch.float32 else both.float()
    pairs = wide.view(len(wide), 2 * heads, -1, 2)
    torch.view_as_complex(pairs).mul_(turns[:, None])
    if wide is not both:
        both.copy_(wide)
