"""Classification heads over hidden states, as transformers' classes compute them; always in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor
from vsr_core.errors import CheckpointError

from .fields import ConfigFields
from .linear import activate
from .packed import Packed
from .weights import StrictTensors

__all__ = ["Head", "HeadKind", "HeadReader", "bert_head", "modernbert_head", "roberta_head"]

HeadKind = Literal["sequence", "token"]


@dataclass(frozen=True, slots=True)
class _Dense:
    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Pools where it is one of sequences, then an inner layer where it has one, then the logits.

    :param pool: ``[tokens, hidden]`` to ``[sequences, hidden]``; None for a head of tokens.
    """

    kind: HeadKind
    pool: Callable[[Tensor, Packed], Tensor] | None
    inner: Callable[[Tensor], Tensor] | None
    classifier: Callable[[Tensor], Tensor]
    labels: int

    def logits(self, states: Tensor, packed: Packed) -> Sequence[Tensor]:
        """The logits of each sequence: ``[labels]``, or ``[tokens, labels]`` for a head of tokens."""
        with torch.inference_mode():
            x = (states if self.pool is None else self.pool(states, packed)).float()
            found = self.classifier(x if self.inner is None else self.inner(x))
            return packed.split(found) if self.kind == "token" else found.unbind(0)


class HeadReader(Protocol):
    """Reads the head of one family."""

    def __call__(self, tensors: StrictTensors, *, kind: HeadKind, hidden: int) -> Head:
        """The head among the tensors.

        :raises CheckpointError: it is not whole; it would otherwise be random.
        """
        ...


def bert_head(tensors: StrictTensors, *, kind: HeadKind, hidden: int) -> Head:
    """``BertForSequenceClassification``: the pooler over the first token; ``BertForTokenClassification``: none."""
    inner: Callable[[Tensor], Tensor] | None = None
    if kind == "sequence":
        pooler = _Dense(
            _plain(tensors.take("pooler.dense.weight", (hidden, hidden))),
            _plain(tensors.take("pooler.dense.bias", (hidden,))),
        )
        inner = _then(pooler, torch.tanh)
    classifier, labels = _classifier(tensors, "classifier", hidden)
    return Head(
        kind=kind, pool=_first if kind == "sequence" else None, inner=inner, classifier=classifier, labels=labels
    )


def roberta_head(tensors: StrictTensors, *, kind: HeadKind, hidden: int) -> Head:
    """``RobertaClassificationHead`` over the first token, and the plain head of tokens."""
    if kind == "token":
        classifier, labels = _classifier(tensors, "classifier", hidden)
        return Head(kind=kind, pool=None, inner=None, classifier=classifier, labels=labels)
    dense = _Dense(
        _plain(tensors.take_head("classifier.dense.weight", (hidden, hidden))),
        _plain(tensors.take_head("classifier.dense.bias", (hidden,))),
    )
    classifier, labels = _classifier(tensors, "classifier.out_proj", hidden)
    return Head(kind=kind, pool=_first, inner=_then(dense, torch.tanh), classifier=classifier, labels=labels)


def modernbert_head(tensors: StrictTensors, *, config: Mapping[str, Any], kind: HeadKind, hidden: int) -> Head:
    """``ModernBertPredictionHead`` (dense, activation, norm) and the classifier, over the first token or their mean."""
    fields = ConfigFields(config, tensors.where)
    pooling = config.get("classifier_pooling", "cls")
    if pooling not in ("cls", "mean"):
        raise fields.refusal("classifier_pooling", f"{pooling!r} is not computed here")
    bias = fields.flag("classifier_bias", default=False)
    dense = _Dense(
        _plain(tensors.take_head("head.dense.weight", (hidden, hidden))),
        _plain(tensors.take_head("head.dense.bias", (hidden,))) if bias else None,
    )
    weight = _plain(tensors.take_head("head.norm.weight", (hidden,)))
    norm_bias = fields.flag("norm_bias", default=False)
    shift = _plain(tensors.take_head("head.norm.bias", (hidden,))) if norm_bias else None
    eps = fields.epsilon("norm_eps", 1e-5)
    activation = fields.activation("classifier_activation")
    classifier, labels = _classifier(tensors, "classifier", hidden)

    def inner(x: Tensor) -> Tensor:
        return F.layer_norm(activate(dense(x), activation), (hidden,), weight, shift, eps)

    pool = {"cls": _first, "mean": _mean}[pooling] if kind == "sequence" else None
    return Head(kind=kind, pool=pool, inner=inner, classifier=classifier, labels=labels)


def _classifier(tensors: StrictTensors, name: str, hidden: int) -> tuple[_Dense, int]:
    try:
        weight = tensors.take_head(f"{name}.weight", (None, hidden))
    except CheckpointError as error:
        raise CheckpointError(
            f"{error.message}; a head that is not in the checkpoint would be random, so it is not made up"
        ) from None
    labels = weight.shape[0]
    return _Dense(_plain(weight), _plain(tensors.take_head(f"{name}.bias", (labels,)))), labels


def _plain(tensor: Tensor) -> Tensor:
    return tensor.float().contiguous()


def _then(first: Callable[[Tensor], Tensor], second: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: second(first(x))


def _first(states: Tensor, packed: Packed) -> Tensor:
    return states[packed.offsets[:-1]]


def _mean(states: Tensor, packed: Packed) -> Tensor:
    pooled = states.new_empty(len(packed.offsets) - 1, states.shape[1], dtype=torch.float32)
    for run in packed.runs:
        grid = states[run.row : run.end].view(run.count, run.length, -1)
        pooled[run.first : run.first + run.count] = grid.mean(1, dtype=torch.float32)
    return pooled
