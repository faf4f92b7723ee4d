"""LoRA adapters as engines take them: immutable low-rank changes to named linear layers, and a head's tensors.

The change of a linear layer ``y = x @ weight.T`` is ``y += (x @ a.T) @ b.T`` (Hu et al. 2021), with the scale, alpha / r
or alpha / sqrt(r), already in ``b``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol, runtime_checkable

from ..contract import FloatArray

__all__ = ["AdapterHost", "AdapterTarget", "Anatomy", "LinearSite", "LoraAdapter", "LowRank"]

AdapterTarget = Literal["sequence", "token", "none"]
"""What the head that comes with an adapter gives logits for; none for an adapter of vectors."""


@dataclass(frozen=True, slots=True)
class LinearSite:
    """A linear layer of a base, which an adapter may change: its weight is ``[out, width]``.

    :param name: as checkpoints of the family call it, without the prefix of the model's class:
        ``encoder.layer.0.attention.self.query``.
    :param layer: the layer of the encoder it is in, counted from 1; None for one of the head.
    """

    name: str
    out: int
    width: int
    layer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """Where the adapters of a base may sit.

    :param prefix: what classes with a head put before the names of the base's modules: ``bert.``, ``model.``.
    :param sites: the linear layers of the encoder.
    :param head_sites: target -> linear layers of the head that PEFT may change in place, such as ``pooler.dense``.
    :param head_tensors: target -> the tensors of its head with their shapes, where None stands for the labels, such as
        ``classifier.weight [labels, hidden]``; the adapter brings them or the base has them.
    :param kept: the names of the head's tensors that the base's own checkpoint has.
    """

    prefix: str
    layers: int
    hidden_size: int
    sites: tuple[LinearSite, ...]
    head_sites: Mapping[AdapterTarget, tuple[LinearSite, ...]] = field(default_factory=lambda: MappingProxyType({}))
    head_tensors: Mapping[AdapterTarget, Mapping[str, tuple[int | None, ...]]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    kept: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class LowRank:
    """The change of one linear layer: ``a`` is float32 ``[r, width]``, ``b`` float32 ``[out, r]`` with the scale in it."""

    a: FloatArray
    b: FloatArray

    @property
    def rank(self) -> int:
        """The r of both."""
        return int(self.a.shape[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoraAdapter:
    """An adapter that was read and checked against the anatomy of its base. Nothing of it ever changes.

    :param key: its content address: SHA-256 over configuration and tensors, hex.
    :param changes: the name of a site -> its change; sites of the head among them.
    :param head: the tensors of the head it brings, by the names of :attr:`Anatomy.head_tensors`, float32.
    :param first_layer: the lowest layer it changes, counted from 1; one more than there are where it changes none.
    """

    key: str
    target: AdapterTarget
    changes: Mapping[str, LowRank]
    head: Mapping[str, FloatArray]
    first_layer: int

    @property
    def bytes(self) -> int:
        """What its tensors take in float32."""
        changes = sum(change.a.nbytes + change.b.nbytes for change in self.changes.values())
        return changes + sum(tensor.nbytes for tensor in self.head.values())


@runtime_checkable
class AdapterHost(Protocol):
    """What an engine offers beside running, where it serves adapters: rows then name one by its key.

    Both methods may be called while batches run; a batch sees an adapter whole or not at all.
    """

    @property
    def anatomy(self) -> Anatomy:
        """Where adapters may sit."""
        ...

    def attach(self, adapter: LoraAdapter) -> None:
        """Make an adapter available to rows; the same key again counts one more use of it.

        :raises CheckpointError: its head is not whole, neither in the adapter nor in the base.
        """
        ...

    def detach(self, key: str) -> None:
        """Give one use of an adapter up; with the last one it is dropped. No row names it any more."""
        ...
