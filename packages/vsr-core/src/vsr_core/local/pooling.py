"""Token vectors into one vector per text, in numpy: the reference for every engine, and its fallback.

A row has no padding: all its tokens are real, so there is no mask. The modes mean what they mean in
sentence-transformers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..contract import FloatArray, PoolingMode, PoolingSpec
from ..errors import InvalidInputError

__all__ = ["l2_normalize", "non_finite_rows", "pool", "pooled_width", "truncate_dimensions"]


def pool(hidden: npt.NDArray[np.floating], spec: PoolingSpec, *, prompt_tokens: int = 0) -> FloatArray:
    """Pool token vectors ``[tokens, hidden]`` into float32 ``[hidden * modes]``, summing in float32.

    With ``include_prompt=False`` the first ``prompt_tokens`` rows are left out: ``cls`` is then the first token after
    the prompt, and ``weighted_mean`` still weights by the position in the whole sequence. Where the prompt is all
    there is, it counts after all: a pool of nothing has no value.
    """
    if hidden.ndim != 2 or not len(hidden):
        raise InvalidInputError(f"token vectors must have the shape [tokens, hidden], not {list(hidden.shape)}")
    skipped = 0 if spec.include_prompt or prompt_tokens >= len(hidden) else prompt_tokens
    tokens = hidden[skipped:]
    parts = [_reduce(tokens, mode, skipped) for mode in spec.modes]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def pooled_width(hidden_size: int, spec: PoolingSpec) -> int:
    """Width of a pooled vector."""
    return hidden_size * len(spec.modes)


def truncate_dimensions(vectors: FloatArray, dimensions: int) -> FloatArray:
    """The leading ``dimensions`` of vectors ``[n, d]`` (Matryoshka); normalise afterwards, not before."""
    return vectors if dimensions == vectors.shape[1] else np.ascontiguousarray(vectors[:, :dimensions])


def l2_normalize(vectors: FloatArray) -> FloatArray:
    """Scale each of ``[n, d]`` to length one; a zero vector stays zero."""
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return np.asarray(vectors * scale[:, None], np.float32)


def non_finite_rows(vectors: FloatArray) -> Sequence[int]:
    """Which of ``[n, d]`` hold NaN or infinity."""
    finite = np.isfinite(vectors)
    return [] if finite.all() else np.flatnonzero(~finite.all(axis=1)).tolist()


def _reduce(tokens: npt.NDArray[np.floating], mode: PoolingMode, skipped: int) -> FloatArray:
    count = len(tokens)
    match mode:
        case "cls":
            pooled = tokens[0]
        case "last":
            pooled = tokens[-1]
        case "max":
            pooled = tokens.max(axis=0)
        case "mean":
            pooled = tokens.sum(axis=0, dtype=np.float32) / np.float32(count)
        case "mean_sqrt_len":
            pooled = tokens.sum(axis=0, dtype=np.float32) / np.sqrt(np.float32(count))
        case "weighted_mean":
            weights = np.arange(skipped + 1, skipped + count + 1, dtype=np.float32)
            pooled = (weights @ tokens.astype(np.float32, copy=False)) / weights.sum()
        case _:
            raise InvalidInputError(f"{mode!r} is no pooling mode", param="pooling")
    return np.asarray(pooled, np.float32)
