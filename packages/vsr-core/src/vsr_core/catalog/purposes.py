"""What a checkpoint is for: the capabilities its class stands for, and those an entry may state instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..contract import FamilyDescriptor
from ..taxonomy import Artifact, Capability

__all__ = ["capability_of_architecture", "capability_of_task", "servable"]

_SUFFIXES: tuple[tuple[str, Capability], ...] = (
    ("ForSequenceClassification", Capability.SEQUENCE_CLASSIFICATION),
    ("ForTokenClassification", Capability.TOKEN_CLASSIFICATION),
    ("ForCausalLM", Capability.GENERATION),
    ("ForMaskedLM", Capability.EMBEDDING),
    ("Model", Capability.EMBEDDING),
)
"""How transformers names its classes; used for a family that lists no architectures of its own."""

_TASKS: Mapping[str, Capability] = {
    "SEQ_CLS": Capability.SEQUENCE_CLASSIFICATION,
    "TOKEN_CLS": Capability.TOKEN_CLASSIFICATION,
    "FEATURE_EXTRACTION": Capability.EMBEDDING,
    "CAUSAL_LM": Capability.GENERATION,
}

_ALSO: Mapping[Capability, frozenset[Capability]] = {
    Capability.SEQUENCE_CLASSIFICATION: frozenset(
        {Capability.PAIR_CLASSIFICATION, Capability.RERANKING, Capability.GUARD}
    ),
    Capability.RERANKING: frozenset({Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION}),
    Capability.TOKEN_CLASSIFICATION: frozenset({Capability.SPANS}),
    Capability.GENERATION: frozenset(
        {Capability.GENERATIVE_CLASSIFICATION, Capability.GUARD, Capability.EMBEDDING, Capability.RERANKING}
    ),
    Capability.GUARD: frozenset({Capability.GENERATION, Capability.GENERATIVE_CLASSIFICATION}),
}
"""What else the same head can be asked for, once an entry says that it was trained for it."""


def capability_of_architecture(architecture: str, family: FamilyDescriptor) -> Capability | None:
    """What a class of ``config.json`` is for, as its family says; None for a class the family does not list."""
    if family.architectures is not None:
        return family.architectures.get(architecture)
    return next((capability for suffix, capability in _SUFFIXES if architecture.endswith(suffix)), None)


def capability_of_task(task_type: str | None) -> Capability | None:
    """What a LoRA adapter is for, from ``task_type`` of its configuration."""
    return _TASKS.get(task_type or "")


def servable(natural: Iterable[Capability], artifact: Artifact | None) -> frozenset[Capability]:
    """Every capability an entry may state for a checkpoint made for ``natural``.

    Whole weights may also be the base of adapters; what the core derives may be named with what it derives from.
    """
    found = set(natural)
    for capability in tuple(found):
        found |= _ALSO.get(capability, frozenset())
    if artifact in (Artifact.FULL, Artifact.MERGED_LORA):
        found |= {Capability.ADAPTER_SERVING, Capability.MULTI_TASK}
    return frozenset(found | {capability for capability in Capability if capability.derived_from in found})
