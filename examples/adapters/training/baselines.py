"""The two answers an adapter has to beat: the commonest label, and the nearest mean vector of the base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch.nn.functional import normalize
from transformers import PreTrainedModel

from .encoding import IGNORED, Encoded
from .predicting import logits_of
from .tasks import Task

__all__ = ["majority", "nearest_prototypes"]


def majority(train: Sequence[Encoded]) -> int:
    """The label that is commonest in training, for every text or token."""
    return Counter(label for one in train for label in one.target if label != IGNORED).most_common(1)[0][0]


def nearest_prototypes(
    task: Task, base: PreTrainedModel, train: Sequence[Encoded], test: Sequence[Encoded]
) -> list[torch.Tensor]:
    """Cosines of each test text, or of each of its tokens, with the mean training vector of each label.

    The vectors are the base's own: the mean over the tokens for a text, the last hidden state for a token.
    """
    vectors = _texts(base) if task.kind == "sequence" else _tokens(base)
    sums = torch.zeros(len(task.outputs), base.config.hidden_size)
    for one, vector in zip(train, logits_of(vectors, train), strict=True):
        rows = vector if vector.dim() == 2 else vector[None]
        for row, label in zip(rows, one.target, strict=True):
            if label != IGNORED:
                sums[label] += row
    prototypes = normalize(sums, dim=-1)
    return [vector @ prototypes.T for vector in logits_of(vectors, test)]


def _texts(base: PreTrainedModel) -> Callable[..., torch.Tensor]:
    def mean(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        states = base(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[..., None].float()
        return normalize((states * mask).sum(dim=1) / mask.sum(dim=1), dim=-1)

    return mean


def _tokens(base: PreTrainedModel) -> Callable[..., torch.Tensor]:
    def states(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return normalize(base(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state, dim=-1)

    return states
