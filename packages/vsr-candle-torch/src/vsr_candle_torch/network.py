"""A model as the engine runs it: hidden states and logits after the layers that are wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from vsr_core.local import Anatomy, BatchShape, LoraAdapter

from .heads import Head, HeadKind
from .packed import Encoder, Packed, forward

__all__ = ["HeadedEncoder", "Network", "States"]


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """What came of a batch, by layer.

    :param hidden: ``[tokens, hidden]``; :param logits: for each sequence ``[labels]``, or ``[tokens, labels]``.
    """

    hidden: Mapping[int, Tensor]
    logits: Mapping[int, Sequence[Tensor]]


class Network(Protocol):
    """An encoder and, where it has one, its head."""

    @property
    def hidden_size(self) -> int:
        """Width of a token vector."""
        ...

    @property
    def layers(self) -> int:
        """The full depth."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """That of the weights and the computation."""
        ...

    @property
    def bytes(self) -> int:
        """What the weights take."""
        ...

    @property
    def head(self) -> HeadKind | None:
        """What the head gives logits for, None without one."""
        ...

    @property
    def labels(self) -> int | None:
        """How many logits the head gives, None without one."""
        ...

    def run(self, packed: Packed, *, hidden: frozenset[int], logits: frozenset[int]) -> States:
        """Run a batch once, for the hidden states and the logits after those layers, counted from 1."""
        ...

    def plan_bytes(self, shape: BatchShape) -> int:
        """An upper estimate of the working memory of a batch, in bytes."""
        ...


class HeadedEncoder:
    """A forward of ours with a head of ours; the head may sit on any layer, and adapters bring heads of their own.

    :param anatomy: where adapters may sit; :param read_head: makes the head of one, None where it has none.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: Head | None,
        *,
        anatomy: Anatomy,
        read_head: Callable[[LoraAdapter], Head | None],
    ) -> None:
        self.encoder = encoder
        self.own_head = head
        self.anatomy = anatomy
        self.read_head = read_head
        self.hidden_size = encoder.hidden_size
        self.layers = encoder.layers
        self.dtype = encoder.dtype
        self.bytes = encoder.bytes
        self.head = head.kind if head is not None else None
        self.labels = head.labels if head is not None else None

    def run(self, packed: Packed, *, hidden: frozenset[int], logits: frozenset[int]) -> States:
        """Run a batch once.

        :raises ValueError: logits are wanted of a model without a head.
        """
        if self.own_head is None and logits:
            raise ValueError("this model was loaded without a classification head")
        states = forward(self.encoder, packed, exits=hidden | logits)
        head = self.own_head
        found = {layer: head.logits(states[layer], packed) for layer in logits} if head is not None else {}
        return States({layer: states[layer] for layer in hidden}, found)

    def plan_bytes(self, shape: BatchShape) -> int:
        """That of the encoder, and for a head of tokens its states and logits."""
        extra = 0
        if self.head == "token":
            extra = shape.tokens * 4 * (2 * self.hidden_size + (self.labels or 0))
        return self.encoder.plan_bytes(shape) + extra
