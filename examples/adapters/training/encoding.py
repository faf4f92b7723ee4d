"""Texts as token ids, batches of them, and the labels of tokens."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedTokenizerBase

from .data import Example
from .tasks import Task

__all__ = ["IGNORED", "Encoded", "batches", "encode", "pad"]

IGNORED = -100
"""The label of tokens that no loss is taken of."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text: its ids with special tokens, the code points of each token, and what it is to learn.

    :param target: one label for a sequence, one a token for tokens, :data:`IGNORED` at special tokens.
    """

    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    target: tuple[int, ...]


def encode(
    task: Task, tokenizer: PreTrainedTokenizerBase, examples: Sequence[Example], *, max_tokens: int
) -> list[Encoded]:
    """Tokenise examples, cut to ``max_tokens``."""
    found = tokenizer(
        [example.text for example in examples], truncation=True, max_length=max_tokens, return_offsets_mapping=True
    )
    encoded = []
    for example, ids, offsets in zip(examples, found["input_ids"], found["offset_mapping"], strict=True):
        places = tuple((int(start), int(end)) for start, end in offsets)
        encoded.append(Encoded(tuple(ids), places, _target(task, example, places)))
    return encoded


def batches(encoded: Sequence[Encoded], size: int, chance: random.Random) -> list[list[Encoded]]:
    """Shuffle into batches of texts of about one length."""
    order = sorted(encoded, key=lambda one: len(one.ids) + chance.uniform(-4, 4))
    made = [order[start : start + size] for start in range(0, len(order), size)]
    chance.shuffle(made)
    return made


def pad(batch: Sequence[Encoded]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Pad a batch to its longest: the inputs of a model, and the targets of each row."""
    longest = max(len(one.ids) for one in batch)
    ids = torch.tensor([[*one.ids, *[0] * (longest - len(one.ids))] for one in batch])
    mask = torch.tensor([[1] * len(one.ids) + [0] * (longest - len(one.ids)) for one in batch])
    width = max(len(one.target) for one in batch)
    targets = torch.tensor([[*one.target, *[IGNORED] * (width - len(one.target))] for one in batch])
    return {"input_ids": ids, "attention_mask": mask}, targets


def _target(task: Task, example: Example, places: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    if task.kind == "sequence":
        return (task.labels.index(example.label),)
    return tuple(_labels_of_tokens(task, example, places))


def _labels_of_tokens(task: Task, example: Example, places: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Label each token: B at the first of a span, I at every other, also within words."""
    begun = set()
    for start, end in places:
        if start == end:
            yield IGNORED
            continue
        mark = next((mark for mark in example.marks if start < mark.end and end > mark.start), None)
        if mark is None:
            yield 0
        else:
            yield task.outputs.index(f"{'I' if mark in begun else 'B'}-{mark.label}")
            begun.add(mark)
