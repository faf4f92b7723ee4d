"""Where adapters sit in each family: which linear layers they may change, and what a head is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from vsr_core.local import AdapterTarget, Anatomy, LinearSite, LoraAdapter

from .heads import Head, HeadReader
from .packed import Encoder
from .weights import StrictTensors

__all__ = ["HeadParts", "anatomy_of", "bert_parts", "head_reader", "modernbert_parts", "roberta_parts"]

Tensors = Mapping[str, tuple[int | None, ...]]
HeadParts = Mapping[AdapterTarget, tuple[Tensors, tuple[LinearSite, ...]]]
"""For each target the tensors of its head by name with their shapes, and those linear layers of it that PEFT changes."""


def bert_parts(hidden: int) -> HeadParts:
    """The pooler is the base's, the classifier the adapter's."""
    pooler = LinearSite("pooler.dense", hidden, hidden)
    return {
        "sequence": ({**_linear("pooler.dense", hidden, hidden), **_linear("classifier", None, hidden)}, (pooler,)),
        "token": (_linear("classifier", None, hidden), ()),
        "none": ({}, (pooler,)),  # of a bare model, which no vector goes through
    }


def roberta_parts(hidden: int) -> HeadParts:
    """The composite head is all the adapter's."""
    composite = {**_linear("classifier.dense", hidden, hidden), **_linear("classifier.out_proj", None, hidden)}
    pooler = LinearSite("pooler.dense", hidden, hidden)
    return {"sequence": (composite, ()), "token": (_linear("classifier", None, hidden), ()), "none": ({}, (pooler,))}


def modernbert_parts(hidden: int, config: Mapping[str, Any]) -> HeadParts:
    """Dense and norm are the base's, for tokens as for sequences; the classifier is the adapter's."""
    tensors = {
        **_linear("head.dense", hidden, hidden, bias=bool(config.get("classifier_bias"))),
        "head.norm.weight": (hidden,),
        **({"head.norm.bias": (hidden,)} if config.get("norm_bias") else {}),
        **_linear("classifier", None, hidden),
    }
    whole = (tensors, (LinearSite("head.dense", hidden, hidden),))
    return {"sequence": whole, "token": whole, "none": ({}, ())}


def anatomy_of(encoder: Encoder, parts: HeadParts, *, prefix: str, kept: Mapping[str, Tensor]) -> Anatomy:
    """The anatomy of a base; ``kept`` are the tensors of heads that its checkpoint has."""
    return Anatomy(
        prefix=prefix,
        layers=encoder.layers,
        hidden_size=encoder.hidden_size,
        sites=encoder.sites,
        head_sites={target: sites for target, (_, sites) in parts.items()},
        head_tensors={target: tensors for target, (tensors, _) in parts.items()},
        kept=frozenset(kept),
    )


def head_reader(
    read: HeadReader, parts: HeadParts, *, hidden: int, kept: Mapping[str, Tensor]
) -> Callable[[LoraAdapter], Head | None]:
    """How the head of an adapter is made: of the tensors it brings, else of those of the base, with its changes in.

    :raises CheckpointError: from what is returned, where neither has a tensor.
    """

    def head(adapter: LoraAdapter) -> Head | None:
        if adapter.target == "none":
            return None
        names = parts[adapter.target][0]
        found = {name: tensor for name, tensor in kept.items() if name in names}
        found |= {name: torch.from_numpy(tensor) for name, tensor in adapter.head.items()}
        for site in parts[adapter.target][1]:
            low, weight = adapter.changes.get(site.name), found.get(f"{site.name}.weight")
            if low is not None and weight is not None:
                found[f"{site.name}.weight"] = weight.float() + torch.from_numpy(low.b @ low.a)
        tensors = StrictTensors(
            found, where=f"the adapter {adapter.key[:12]}", prefixes=(), probe=min(found, default="")
        )
        made = read(tensors, kind=adapter.target, hidden=hidden)
        tensors.refuse_others(allowed=())
        return made

    return head


def _linear(name: str, out: int | None, width: int, *, bias: bool = True) -> dict[str, tuple[int | None, ...]]:
    weight: dict[str, tuple[int | None, ...]] = {f"{name}.weight": (out, width)}
    return weight | ({f"{name}.bias": (out,)} if bias else {})
