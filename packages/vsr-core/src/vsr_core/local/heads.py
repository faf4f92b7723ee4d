"""Classification heads in numpy, for engines whose graph ends at the hidden states; always in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..catalog.manifest import HEAD_WEIGHTS, HeadLayout
from ..contract import FloatArray
from ..errors import CheckpointError
from .activations import ACTIVATIONS
from .tensors import read_float32

__all__ = ["NumpyHead"]

_BLOCK = 4096
"""Rows computed at a time, so that a head of tokens needs little memory beside its logits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumpyHead:
    """Pool, dense layer, activation, layer norm, classifier: the parts its layout names, in this order.

    Weights are float32 ``[out, in]``, biases and the norm float32 ``[out]``.
    """

    layout: HeadLayout
    dense: FloatArray | None
    dense_bias: FloatArray | None
    norm: FloatArray | None
    norm_bias: FloatArray | None
    classifier: FloatArray
    bias: FloatArray

    @classmethod
    def read(cls, folder: Path, layout: HeadLayout, *, hidden_size: int) -> NumpyHead:
        """Read the head of an exported model from ``head.safetensors``.

        :raises CheckpointError: the file is missing, damaged, or does not hold the tensors the layout calls for.
        """
        source = _Tensors(folder / HEAD_WEIGHTS)
        square, wide = (hidden_size, hidden_size), (hidden_size,)
        dense, norm = layout.dense, layout.norm_eps is not None
        head = cls(
            layout=layout,
            dense=source.take("dense.weight", square) if dense else None,
            dense_bias=source.take_optional("dense.bias", wide) if dense else None,
            norm=source.take("norm.weight", wide) if norm else None,
            norm_bias=source.take_optional("norm.bias", wide) if norm else None,
            classifier=source.take("classifier.weight", (layout.labels, hidden_size)),
            bias=source.take("classifier.bias", (layout.labels,)),
        )
        source.refuse_others()
        return head

    @property
    def reads_tokens(self) -> bool:
        """Whether it gives logits for every token, rather than for the sequence."""
        return self.layout.kind == "token"

    def logits(self, hidden: FloatArray) -> FloatArray:
        """The logits of one sequence ``[tokens, hidden]``: ``[labels]``, or ``[tokens, labels]`` for a head of tokens."""
        (logits,) = self.logits_of([hidden])
        return logits

    def logits_of(self, sequences: Sequence[FloatArray]) -> list[FloatArray]:
        """The logits of several sequences, each as :meth:`logits` gives them."""
        if not self.reads_tokens:
            return list(self._score(np.stack([self._pool(hidden) for hidden in sequences])))
        return [self._score(hidden) for hidden in sequences]

    def _pool(self, hidden: FloatArray) -> FloatArray:
        if self.layout.pool == "cls":
            return np.asarray(hidden[0], np.float32)
        return np.asarray(hidden.mean(axis=0, dtype=np.float32))

    def _score(self, vectors: FloatArray) -> FloatArray:
        """Float32 ``[n, hidden]`` to float32 ``[n, labels]``."""
        if len(vectors) <= _BLOCK:
            return self._score_block(vectors)
        starts = range(0, len(vectors), _BLOCK)
        return np.concatenate([self._score_block(vectors[start : start + _BLOCK]) for start in starts])

    def _score_block(self, x: FloatArray) -> FloatArray:
        if self.dense is not None:
            x = x @ self.dense.T
            if self.dense_bias is not None:
                x += self.dense_bias
        if self.layout.activation is not None:
            x = ACTIVATIONS[self.layout.activation](x)
        if self.norm is not None:
            x = _layer_norm(x, self.norm, self.norm_bias, eps=self.layout.norm_eps or 0.0)
        return np.asarray(x @ self.classifier.T + self.bias, np.float32)


def _layer_norm(x: FloatArray, weight: FloatArray, bias: FloatArray | None, *, eps: float) -> FloatArray:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last dimension, with the biased variance."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(variance + np.float32(eps)) * weight
    return np.asarray(scaled if bias is None else scaled + bias, np.float32)


class _Tensors:
    """The tensors of one file, taken one by one, each with the shape it must have."""

    def __init__(self, file: Path) -> None:
        if not file.is_file():
            raise CheckpointError(f"{str(file)!r} is missing: the classification head needs it; export the model again")
        self._file = file
        self._left = read_float32(file)

    def take(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        found = self.take_optional(name, shape)
        if found is None:
            raise CheckpointError(f"{str(self._file)!r} has no {name!r} {list(shape)}, which the head needs")
        return found

    def take_optional(self, name: str, shape: tuple[int, ...]) -> FloatArray | None:
        found = self._left.pop(name, None)
        if found is not None and found.shape != shape:
            raise CheckpointError(
                f"{str(self._file)!r}: {name!r} should be {list(shape)}, the file has {list(found.shape)}"
            )
        return found

    def refuse_others(self) -> None:
        if self._left:
            raise CheckpointError(
                f"{str(self._file)!r} has {min(self._left)!r}, which the head in the manifest does not use; "
                "export the model again"
            )
