"""What a model answers: a label for a text, or spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from .data import Mark
from .encoding import Encoded, pad
from .tasks import Task

__all__ = ["logits_of", "spans_of"]

BATCH = 32


def logits_of(model: Callable[..., torch.Tensor], encoded: Sequence[Encoded]) -> list[torch.Tensor]:
    """Run a model over texts, in their order: ``[labels]``, or ``[tokens, labels]`` less the padding, of each.

    :param model: gives the logits of a padded batch.
    """
    found: dict[int, torch.Tensor] = {}
    order = sorted(range(len(encoded)), key=lambda index: len(encoded[index].ids))
    with torch.inference_mode():
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            rows = model(**pad([encoded[index] for index in part])[0])
            for index, row in zip(part, rows, strict=True):
                found[index] = row[: len(encoded[index].ids)] if row.dim() == 2 else row
    return [found[index] for index in range(len(encoded))]


def spans_of(task: Task, one: Encoded, labels: Sequence[int]) -> tuple[Mark, ...]:
    """Join tokens into spans as the aggregation ``simple`` of transformers does.

    A token continues the span before it where it has the same entity and no B; an I at the start begins one.
    """
    spans: list[Mark] = []
    open_entity = ""
    for (start, end), label in zip(one.offsets, labels, strict=True):
        if start == end:
            open_entity = ""
            continue
        prefix, _, entity = task.outputs[label].partition("-")
        if entity and entity == open_entity and prefix == "I":
            spans[-1] = Mark(spans[-1].start, end, entity)
        elif entity:
            spans.append(Mark(start, end, entity))
        open_entity = entity
    return tuple(spans)
