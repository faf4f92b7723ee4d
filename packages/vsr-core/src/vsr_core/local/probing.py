"""What a model answers to plain texts while it is loaded: which dtype will do, and whether its files are sound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..catalog.documents import model_folder
from ..contract import FloatArray, LoadRequest, PoolingSpec
from ..errors import CheckpointError, InvalidInputError, NonFiniteOutputError
from .adapted import AdaptedBase
from .comparing import PROBE_TEXTS, Comparison, largest_shift, least_cosine
from .engine import BatchRow, EncoderEngine, IntArray, RaggedBatch, Want, WantHidden, WantLogits, WantPooled
from .lora import AdapterTarget
from .pooling import pool
from .tickets import RowWant, WorkItem
from .tokenize import TextTokenizer

__all__ = ["compare", "probe_ids", "prove", "prove_adapter"]

_PLENTY = 512
"""Tokens the longest probe text is well within."""


def probe_ids(request: LoadRequest, *, vocabulary: int | None, max_tokens: int | None = None) -> list[IntArray]:
    """The token ids of the probe texts, shortest first.

    :param vocabulary: rows of the token embedding; :param max_tokens: what the engine takes, where the spec is silent.
    :raises CheckpointError: the tokenizer is missing, damaged or of another model, or the limit leaves no room.
    """
    spec = request.spec
    tokenizer = TextTokenizer.from_folder(
        model_folder(request.path), vocab_size=vocabulary, lowercase=bool(spec.lowercase)
    )
    limit = min(limit for limit in (_PLENTY, spec.max_tokens, max_tokens) if limit is not None)
    try:
        encoded = tokenizer.encode(PROBE_TEXTS, max_tokens=limit)
    except InvalidInputError as error:  # plain texts, so it is the checkpoint that is at fault
        raise CheckpointError(f"{request.backend_id} cannot read plain texts: {error.message}") from None
    return sorted((text.ids for text in encoded), key=len)


def compare(request: LoadRequest, full: EncoderEngine, half: EncoderEngine, *, ids: Sequence[IntArray]) -> Comparison:
    """How far apart two engines are: in probabilities where there is a head, else in cosines."""
    if "logits" in full.reduces:
        one, other = (_run(engine, ids, WantLogits()) for engine in (full, half))
        activation = request.spec.activation or "softmax"
        return Comparison(kind="probability", worst=largest_shift(one, other, activation=activation))
    pooling = PoolingSpec(modes=(request.spec.pooling or PoolingSpec(modes=("mean",))).modes)
    one, other = (_vectors(engine, ids, pooling) for engine in (full, half))
    return Comparison(kind="cosine", worst=least_cosine(one, other))


def prove(request: LoadRequest, engine: EncoderEngine, *, ids: Sequence[IntArray]) -> None:
    """Run the probe texts once, padded into one batch.

    :raises CheckpointError: the outputs are not of the shapes, or not as many as the labels, that the files promise.
    :raises NonFiniteOutputError: the model answers NaN or infinity.
    """
    name = str(request.backend_id)
    try:
        rows = _run(engine, ids, WantLogits()) if "logits" in engine.reduces else _vectors(engine, ids, None)
    except ValueError as error:
        raise CheckpointError(f"{name}: {error}") from error
    labels = request.labels or request.spec.labels
    if "logits" in engine.reduces and labels is not None and rows[0].shape[-1] != len(labels):
        raise CheckpointError(
            f"{name}: the head of {str(request.path)!r} gives {rows[0].shape[-1]} logits, and there are {len(labels)}"
            " labels: state the labels of this head"
        )
    if not all(np.isfinite(row).all() for row in rows):
        raise NonFiniteOutputError(
            f"{name} answers NaN or infinity to plain texts: its weights are damaged, or it was converted wrongly",
            backend_id=name,
        )


def prove_adapter(request: LoadRequest, base: AdaptedBase, *, target: AdapterTarget) -> None:
    """Run the probe texts with an adapter beside whatever else its base runs.

    :param base: leased.
    :raises CheckpointError: not as many logits as labels, or token vectors that are those of the bare base.
    :raises NonFiniteOutputError: NaN or infinity.
    """
    name = str(request.backend_id)
    wants: tuple[RowWant, ...] = (RowWant(WantHidden()), RowWant(WantHidden(), adapter=base.adapter))
    if target != "none":
        wants += (RowWant(WantLogits(), adapter=base.adapter),)
    texts = base.tokenizer.encode(PROBE_TEXTS, max_tokens=min(_PLENTY, base.max_tokens))
    answers = base.batcher.submit([WorkItem(text.ids, text.type_ids, 0, wants) for text in texts]).result()
    if not all(np.isfinite(row).all() for _, *rows in answers for row in rows):
        raise NonFiniteOutputError(
            f"{name} answers NaN or infinity to plain texts on {base.base.identity.backend_id}", backend_id=name
        )
    labels = request.labels or request.spec.labels
    if target != "none" and labels is not None and answers[0][2].shape[-1] != len(labels):
        raise CheckpointError(
            f"{name}: the head gives {answers[0][2].shape[-1]} logits, and there are {len(labels)} labels: state the"
            " labels of this head"
        )
    if base.shared_layers < (base.spec.layers or 0) and all(np.array_equal(row[0], row[1]) for row in answers):
        raise CheckpointError(
            f"{name}: its changes are too small for {base.identity.dtype.actual}, in which the base computes: it would"
            " answer as the base does; load the base with 'precision: fp32'"
        )


def _vectors(engine: EncoderEngine, ids: Sequence[IntArray], pooling: PoolingSpec | None) -> Sequence[FloatArray]:
    """Pooled vectors, or hidden states where no pooling is asked for and the engine has them."""
    wanted = pooling or PoolingSpec(modes=("mean",))
    if engine.reduces.issuperset(wanted.modes):
        return _run(engine, ids, WantPooled(wanted))
    rows = _run(engine, ids, WantHidden())
    return rows if pooling is None else [pool(row, pooling, prompt_tokens=0) for row in rows]


def _run(engine: EncoderEngine, ids: Sequence[IntArray], want: Want) -> Sequence[FloatArray]:
    flat = np.concatenate(ids).astype(np.int32)
    batch = RaggedBatch(
        ids=flat,
        type_ids=np.zeros_like(flat),
        offsets=np.cumsum([0, *map(len, ids)], dtype=np.int32),
        prompt_tokens=np.zeros(len(ids), np.int32),
        rows=tuple(BatchRow(index, want) for index in range(len(ids))),
    )
    return engine.run(batch).rows
