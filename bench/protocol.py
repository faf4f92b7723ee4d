"""What the benchmark and its worker processes say to each other: one JSON object a line.

The benchmark writes an :class:`Ask`; the worker answers ``{"result": ...}`` with the dataclass that belongs to the
command, or ``{"error": "..."}``. This module runs in every environment and needs the standard library only.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = [
    "Ask",
    "Command",
    "CycleMemory",
    "Done",
    "ForwardMemory",
    "ForwardTimes",
    "IdleUse",
    "Loaded",
    "Prepared",
    "RunTime",
    "SingleTimes",
    "SubjectFacts",
    "SweepPoint",
    "decode_ask",
    "encode",
]

Command = Literal["load", "prepare", "run", "single", "forward", "memory", "cycle", "idle", "save", "close"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One command to a worker.

    :param path: for ``load``, a JSON file with the texts, or the folder of a checkpoint; for ``save``, the ``.npy``
        file to write; where a batch of token ids is asked for, its JSON file.
    :param count: for ``single``, how many of the texts to embed, one at a time; for ``forward``, how often; for
        ``idle``, for how many seconds.
    """

    command: Command
    path: str | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectFacts:
    """How something is measured: its dtype as it says itself, its compute threads, the versions behind it.

    :param details: anything else worth reading beside a number.
    """

    dtype: str
    threads: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """The best time of one batch size, in texts or in padded tokens, over the same texts."""

    batch_size: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Answers ``load``: seconds for imports and weights, and the process's memory after them."""

    seconds: float
    resident_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Answers ``prepare``: everything is warm and tuned; ``tokens`` is the worker's own count over all texts."""

    seconds: float
    tokens: int
    facts: SubjectFacts
    sweep: tuple[SweepPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTime:
    """Answers ``run``: all texts once.

    :param peak_bytes: the most memory resident meanwhile.
    :param others: processors that other processes kept busy meanwhile, on average.
    """

    seconds: float
    texts: int
    peak_bytes: int | None
    others: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleTimes:
    """Answers ``single``: seconds of each of the first texts, asked one at a time."""

    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardTimes:
    """Answers ``forward``: seconds of each pass over the same batch.

    :param others: processors that other processes kept busy meanwhile, on average.
    """

    seconds: tuple[float, ...]
    others: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardMemory:
    """Answers ``memory``: what one pass over a batch added to the process.

    :param resident_bytes: before the pass; :param peak_bytes: the most during it.
    :param peak_is_its_own: whether the peak was counted anew for the pass, or is that of the whole process.
    :param planned_bytes: what the engine says it needs at most, None where it says nothing.
    """

    resident_bytes: int | None
    peak_bytes: int | None
    peak_is_its_own: bool
    planned_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleMemory:
    """Answers ``cycle``: the model was loaded, answered, and was unloaded.

    :param seconds: of the load; :param dtype: what the model computed in.
    :param loaded_bytes: resident after the answer; :param unloaded_bytes: after unloading.
    """

    seconds: float
    dtype: str
    loaded_bytes: int | None
    unloaded_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleUse:
    """Answers ``idle``: what all threads of the process computed while a loaded model was asked nothing."""

    seconds: float
    processor_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Answers ``save`` and ``close``."""

    path: str | None = None


Reply = Loaded | Prepared | RunTime | SingleTimes | ForwardTimes | ForwardMemory | CycleMemory | IdleUse | Done


def encode(message: Ask | Reply | str) -> str:
    """One line for a message; a string is an error."""
    body: dict[str, Any]
    if isinstance(message, str):
        body = {"error": message}
    else:
        body = asdict(message) if isinstance(message, Ask) else {"result": asdict(message)}
    return json.dumps(body) + "\n"


def decode_ask(line: str) -> Ask:
    """Read what :func:`encode` made of an ask."""
    return Ask(**json.loads(line))
