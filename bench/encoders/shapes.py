"""The checkpoint every contestant reads: a ModernBERT of random weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SHAPES", "ModernBertShape", "write_checkpoint"]

_SPREAD = 1.5
"""Of queries and keys: attention is as peaked as that of trained models, so that a wrong mask or rotation shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernBertShape:
    """The sizes of a model; every third layer looks everywhere, the others within the window.

    :param window: tokens a windowed layer sees, ``local_attention`` in ``config.json``.
    :param exit_layer: where the contestant that leaves early does so, counted from 1.
    """

    name: str
    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    window: int
    positions: int
    exit_layer: int


_SHAPES = (
    ModernBertShape(
        name="base",
        hidden=768,
        layers=22,
        heads=12,
        intermediate=1152,
        vocabulary=50368,
        window=128,
        positions=8192,
        exit_layer=6,
    ),
    ModernBertShape(
        name="tiny",
        hidden=32,
        layers=4,
        heads=4,
        intermediate=48,
        vocabulary=600,
        window=16,
        positions=8192,
        exit_layer=1,
    ),
)

SHAPES: Mapping[str, ModernBertShape] = {shape.name: shape for shape in _SHAPES}
"""By name: that of ``answerdotai/ModernBERT-base``, and one that takes no time, for trying the benchmark itself."""


def write_checkpoint(folder: Path, shape: ModernBertShape, *, seed: int = 0) -> Path:
    """Write the files of such a model in float32; returns the folder."""
    from vsr_core.testing import EncoderShape, write_encoder

    sizes = EncoderShape(
        hidden=shape.hidden,
        layers=shape.layers,
        heads=shape.heads,
        intermediate=shape.intermediate,
        positions=shape.positions,
        spread=_SPREAD,
    )
    stated = {"vocab_size": shape.vocabulary, "local_attention": shape.window}
    return write_encoder(folder, "modernbert", shape=sizes, config=stated, seed=seed)
