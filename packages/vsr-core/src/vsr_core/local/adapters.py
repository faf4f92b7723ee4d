"""Reading LoRA adapters as PEFT saves them, strictly: every tensor that is expected is there, and no other is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from ..catalog.adapters import AdapterConfig
from ..contract import FloatArray
from ..errors import CheckpointError
from ..taxonomy import Capability
from .lora import AdapterTarget, Anatomy, LinearSite, LoraAdapter, LowRank
from .tensors import read_float32

__all__ = ["read_adapter", "target_of"]

_FILE: Final = "adapter_model.safetensors"
_WRAPPERS: Final = "base_model.model."
_BESIDE_BASE: Final = frozenset({"classifier", "score", "head", "pre_classifier"})
"""Modules of a head that a class of transformers has beside its base; a pooler is within the base."""

_SHOWN: Final = 4


def target_of(capabilities: tuple[Capability, ...]) -> AdapterTarget:
    """What the head of an adapter of these capabilities gives logits for."""
    if Capability.TOKEN_CLASSIFICATION in capabilities:
        return "token"
    return "none" if Capability.EMBEDDING in capabilities else "sequence"


def read_adapter(
    folder: Path, config: AdapterConfig, anatomy: Anatomy, *, target: AdapterTarget, where: str
) -> LoraAdapter:
    """Read the tensors of an adapter against the anatomy of its base.

    :param target: what the adapter was made for, which decides on its head.
    :param where: what messages call it.
    :raises CheckpointError: a tensor that is missing, not expected, of another shape or rank, or not finite; a head
        that is whole neither in the adapter nor in the base; changes that are all zero. ``problems`` has them all.
    """
    reading = _Reading(read_float32(folder / _FILE), config, anatomy, target=target)
    changes = {site.name: change for site in reading.expected for change in reading.change(site)}
    head = reading.head()
    reading.refuse_the_rest()
    if not reading.problems and not any(change.b.any() for change in changes.values()):
        reading.problems.append("every lora_B is zero, so that it would answer as the base does: it was not trained")
    if reading.problems:
        listed = "; ".join(reading.problems)
        raise CheckpointError(f"{where}: {_FILE}: {listed}", problems=reading.problems)
    depths = [site.layer for site in reading.expected if site.layer is not None]
    return LoraAdapter(
        key=_content_key(target, changes, head),
        target=target,
        changes=MappingProxyType(changes),
        head=MappingProxyType(head),
        first_layer=min(depths, default=anatomy.layers + 1),
    )


class _Reading:
    """The tensors of a file, taken out one by one; every step adds to ``problems`` and goes on."""

    def __init__(
        self, tensors: dict[str, FloatArray], config: AdapterConfig, anatomy: Anatomy, *, target: AdapterTarget
    ) -> None:
        self.problems: list[str] = []
        self._left = {name.removeprefix(_WRAPPERS): tensor for name, tensor in tensors.items()}
        self._config = config
        self._anatomy = anatomy
        self._target = target
        self._missing: list[str] = []
        sites = (*anatomy.sites, *anatomy.head_sites.get(target, ()))
        self.expected = [site for site in sites if config.changes(self._full(site.name))]
        if not self.expected:
            self.problems.append("'target_modules' names none of the linear layers of the base")

    def change(self, site: LinearSite) -> list[LowRank]:
        """The change of a linear layer, none where it is not whole."""
        module = self._full(site.name)
        rank = self._config.rank_of(module)
        a = self._take(f"{module}.lora_A.weight", (rank, site.width))
        b = self._take(f"{module}.lora_B.weight", (site.out, rank))
        if a is None or b is None:
            return []
        return [LowRank(a, b * np.float32(self._config.scale_of(module)))]

    def head(self) -> dict[str, FloatArray]:
        """The tensors of the head that the adapter brings; what it does not bring the base must have."""
        wanted = self._anatomy.head_tensors.get(self._target, {})
        found: dict[str, FloatArray] = {}
        neither: list[str] = []
        for name, shape in wanted.items():
            full = self._full(name)
            if self._config.saves(full.rpartition(".")[0]):
                tensor = self._take(full, shape)
                if tensor is not None:
                    found[name] = tensor
            elif name not in self._anatomy.kept:
                neither.append(name)
        if neither:
            self.problems.append(
                f"neither the adapter nor its base has {_listed(neither)} of the head, which would be random: train "
                f"the adapter with modules_to_save=[{neither[0].partition('.')[0]!r}], or use a base that has it"
            )
        if len({tensor.shape[0] for name, tensor in found.items() if wanted[name][0] is None}) > 1:
            self.problems.append("weight and bias of the classifier have different numbers of labels")
        return found

    def refuse_the_rest(self) -> None:
        """What was expected and is missing, and what is there and was not expected."""
        if self._missing:
            self.problems.append(f"{_listed(self._missing)} missing: the file is cut or of another configuration")
        if self._left:
            self.problems.append(
                f"{_listed(sorted(self._left))} not expected by its configuration on this base: it is of another base,"
                " another task or another configuration"
            )

    def _take(self, name: str, shape: tuple[int | None, ...]) -> FloatArray | None:
        tensor = self._left.pop(name, None)
        if tensor is None:
            self._missing.append(name)
            return None
        fits = len(tensor.shape) == len(shape) and all(
            want in (None, size) for want, size in zip(shape, tensor.shape, strict=True)
        )
        if not fits:
            wanted = ["labels" if size is None else size for size in shape]
            self.problems.append(f"{name} has the shape {list(tensor.shape)}, expected {wanted}")
            return None
        if not np.isfinite(tensor).all():
            self.problems.append(f"{name} holds NaN or infinity")
            return None
        return tensor

    def _full(self, name: str) -> str:
        """The name in the class the adapter was trained on: one without a head has no prefix."""
        bare = self._target == "none" or name.partition(".")[0] in _BESIDE_BASE
        return name if bare else self._anatomy.prefix + name


def _content_key(target: AdapterTarget, changes: Mapping[str, LowRank], head: Mapping[str, FloatArray]) -> str:
    """SHA-256, hex, over what the adapter computes: the configuration is folded into the changes."""
    tensors = {f"{name}.a": change.a for name, change in changes.items()}
    tensors |= {f"{name}.b": change.b for name, change in changes.items()}
    tensors |= head
    total = hashlib.sha256(target.encode())
    for name, tensor in sorted(tensors.items()):
        total.update(f"\n{name} {tensor.shape}\n".encode())
        total.update(np.ascontiguousarray(tensor).data)
    return total.hexdigest()


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(map(repr, names[:_SHOWN]))}{more} {'is' if len(names) == 1 else 'are'}"
