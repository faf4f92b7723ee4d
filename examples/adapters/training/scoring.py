"""One adapter and its baselines on the same texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import PeftModel

from .baselines import majority, nearest_prototypes
from .data import Example, Mark
from .encoding import Encoded, encode
from .evaluation import Score, accuracy, entity_f1, per_entity, per_label
from .model import LIMIT, bare, tokenizer_of
from .predicting import logits_of, spans_of
from .tasks import Task

__all__ = ["Result", "logits_on", "score"]


@dataclass(frozen=True, slots=True)
class Result:
    """The score of an adapter, those of the baselines on the same texts, and the adapter's by label."""

    adapter: Score
    majority: Score
    prototype: Score
    by_label: Mapping[str, float]

    @property
    def beats_the_baselines(self) -> bool:
        """Whether the whole interval of the adapter lies above what both baselines score."""
        return self.adapter.low > max(self.majority.value, self.prototype.value)


def logits_on(task: Task, model: PeftModel, base: Path, examples: Sequence[Example]) -> list[torch.Tensor]:
    """The logits of a model on examples, none of which is cut.

    :raises ValueError: a text is longer than the base reads.
    """
    return logits_of(_answers(model), _whole(task, base, examples))


def score(
    task: Task, logits: Sequence[torch.Tensor], *, base: Path, train: Sequence[Example], test: Sequence[Example]
) -> Result:
    """Score the logits of an adapter on a test set, and both baselines made from the same training texts."""
    taught = encode(task, tokenizer_of(base), train, max_tokens=task.settings.max_tokens)
    asked = _whole(task, base, test)
    commonest = majority(taught)
    near = nearest_prototypes(task, bare(base), taught, asked)
    fixed = [torch.nn.functional.one_hot(torch.tensor(commonest), len(task.outputs)).expand_as(row) for row in logits]
    return Result(
        _score(task, logits, asked, test),
        _score(task, fixed, asked, test),
        _score(task, near, asked, test),
        _by_label(task, logits, asked, test),
    )


def _answers(model: PeftModel) -> Callable[..., torch.Tensor]:
    def logits(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = model(input_ids=input_ids, attention_mask=attention_mask).logits
        return found

    return logits


def _whole(task: Task, base: Path, examples: Sequence[Example]) -> list[Encoded]:
    encoded = encode(task, tokenizer_of(base), examples, max_tokens=LIMIT + 1)
    if any(len(one.ids) > LIMIT for one in encoded):
        raise ValueError(f"{task.name}: a text has more than {LIMIT} tokens")
    return encoded


def _score(task: Task, rows: Sequence[torch.Tensor], asked: Sequence[Encoded], test: Sequence[Example]) -> Score:
    if task.kind == "sequence":
        return accuracy(*_labels(rows, asked))
    return entity_f1([example.marks for example in test], _spans(task, rows, asked))


def _by_label(
    task: Task, rows: Sequence[torch.Tensor], asked: Sequence[Encoded], test: Sequence[Example]
) -> Mapping[str, float]:
    if task.kind == "sequence":
        return per_label(task.labels, *_labels(rows, asked))
    return per_entity(task.labels, [example.marks for example in test], _spans(task, rows, asked))


def _labels(rows: Sequence[torch.Tensor], asked: Sequence[Encoded]) -> tuple[list[int], list[int]]:
    return [one.target[0] for one in asked], [int(row.argmax()) for row in rows]


def _spans(task: Task, rows: Sequence[torch.Tensor], asked: Sequence[Encoded]) -> list[tuple[Mark, ...]]:
    return [spans_of(task, one, row.argmax(dim=-1).tolist()) for one, row in zip(asked, rows, strict=True)]
