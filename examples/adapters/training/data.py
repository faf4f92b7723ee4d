"""Texts with their labels, from the files of a task and from what its sources draw."""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from .tasks import Task

__all__ = ["DATA", "Dataset", "Example", "Mark", "held_out", "read_dataset"]

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A span of a text, in code points, and what it is."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A text with its label, or with its spans where the task marks tokens.

    :param group: examples of one group, such as those of one template, never lie on both sides of a split.
    """

    text: str
    label: str = ""
    marks: tuple[Mark, ...] = ()
    group: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a task learns from, and what it is scored on."""

    train: tuple[Example, ...]
    test: tuple[Example, ...]


def read_dataset(task: Task, seed: int) -> Dataset:
    """Read ``train.jsonl`` and ``test.jsonl`` of a task, and add what its ``sources.py`` draws to the former.

    ``sources.py``, where a task has one, defines ``examples(seed)``, which yields rows as the lines of the files hold
    them; a row may name its ``group``.

    :raises ValueError: a label the task does not have, or a span that is none.
    """
    folder = DATA / task.name
    train = [*_read(task, folder / "train.jsonl"), *_drawn(task, folder / "sources.py", seed)]
    return Dataset(tuple(train), tuple(_read(task, folder / "test.jsonl")))


def held_out(examples: Sequence[Example], seed: int, share: float = 0.2) -> tuple[list[Example], list[Example]]:
    """Split examples into those to learn from and those to choose settings by, group by group."""
    groups = sorted({example.group for example in examples})
    random.Random(seed).shuffle(groups)
    kept = set(groups[: round(len(groups) * share)])
    return (
        [example for example in examples if example.group not in kept],
        [example for example in examples if example.group in kept],
    )


def _read(task: Task, path: Path) -> Iterator[Example]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            row = cast("dict[str, Any]", json.loads(line))
            yield _example(task, {"group": f"{path.name}:{number}", **row}, f"{path.name}, line {number}")


def _drawn(task: Task, path: Path, seed: int) -> Iterator[Example]:
    if not path.is_file():
        return
    spec = importlib.util.spec_from_file_location(f"sources_of_{task.name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for number, row in enumerate(module.examples(seed), 1):
        yield _example(task, {"group": f"{path.name}:{number}", **row}, f"{path.name}, example {number}")


def _example(task: Task, row: Mapping[str, Any], where: str) -> Example:
    text, group = str(row["text"]), str(row["group"])
    if task.kind == "sequence":
        if row["label"] not in task.labels:
            raise ValueError(f"{task.name}: {where}: {row['label']!r} is none of {', '.join(task.labels)}")
        return Example(text=text, label=str(row["label"]), group=group)
    marks = tuple(sorted(Mark(int(span["start"]), int(span["end"]), str(span["label"])) for span in row["spans"]))
    reach = 0
    for mark in marks:
        covered = text[mark.start : mark.end]
        if mark.label not in task.labels or mark.start < reach or not covered or covered != covered.strip():
            raise ValueError(f"{task.name}: {where}: {mark} is no span of {text!r}")
        reach = mark.end
    return Example(text=text, marks=marks, group=group)
