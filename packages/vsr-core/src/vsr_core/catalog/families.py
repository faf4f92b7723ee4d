"""The model families the core knows, and how the family of a checkpoint is recognised from its ``config.json``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..contract import FamilyDescriptor, PoolingMode
from ..taxonomy import Capability, Family

__all__ = ["CORE_FAMILIES", "belongs", "recognise"]

MINILM_HIDDEN_SIZE = 384
"""Width of every MiniLM of the L6 and L12 geometry; no released BERT of another line has it without being one."""

GEMMA_VOCABULARY = 256_000
"""Tokens of the Gemma vocabulary, which mmBERT took over; ModernBERT has 50,368."""

_HEADS = {
    "Model": Capability.EMBEDDING,
    "ForMaskedLM": Capability.EMBEDDING,
    "ForSequenceClassification": Capability.SEQUENCE_CLASSIFICATION,
    "ForTokenClassification": Capability.TOKEN_CLASSIFICATION,
    "ForCausalLM": Capability.GENERATION,
}
_ENCODER = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
_DECODER = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForCausalLM")


def _classes(prefix: str, heads: tuple[str, ...]) -> dict[str, Capability]:
    return {prefix + head: _HEADS[head] for head in heads}


def _core(
    family: Family,
    summary: str,
    *,
    model_types: tuple[str, ...],
    architectures: Mapping[str, Capability],
    pooling: PoolingMode | None = None,
    positions_after_padding: bool = False,
) -> FamilyDescriptor:
    return FamilyDescriptor(
        name=family.value,
        contract="1.0",
        summary=summary,
        model_types=model_types,
        architectures=architectures,
        pooling=pooling,
        positions_after_padding=positions_after_padding,
    )


CORE_FAMILIES: tuple[FamilyDescriptor, ...] = (
    _core(
        Family.BERT,
        "BERT encoders with learned positions",
        model_types=("bert",),
        architectures=_classes("Bert", _ENCODER) | {"BertForPreTraining": Capability.EMBEDDING},
    ),
    _core(
        Family.MINILM,
        "BERT encoders of the MiniLM geometry: 384 wide",
        model_types=("bert",),
        architectures=_classes("Bert", _ENCODER),
    ),
    _core(
        Family.ROBERTA,
        "RoBERTa encoders, whose positions start after the padding id",
        model_types=("roberta",),
        architectures=_classes("Roberta", _ENCODER),
        positions_after_padding=True,
    ),
    _core(
        Family.XLM_ROBERTA,
        "multilingual RoBERTa encoders",
        model_types=("xlm-roberta",),
        architectures=_classes("XLMRoberta", _ENCODER),
        positions_after_padding=True,
    ),
    _core(
        Family.MODERNBERT,
        "ModernBERT encoders with rotary positions and alternating attention",
        model_types=("modernbert",),
        architectures=_classes("ModernBert", _ENCODER),
    ),
    _core(
        Family.MMBERT,
        "multilingual ModernBERT encoders with the Gemma vocabulary",
        model_types=("modernbert",),
        architectures=_classes("ModernBert", _ENCODER),
        pooling="mean",
    ),
    _core(
        Family.DEBERTA,
        "DeBERTa v2 and v3 encoders with disentangled attention",
        model_types=("deberta-v2",),
        architectures=_classes("DebertaV2", _ENCODER),
    ),
    _core(
        Family.QWEN3,
        "Qwen3 decoders: embedding, classification and generation",
        model_types=("qwen3",),
        architectures=_classes("Qwen3", _DECODER),
        pooling="last",
    ),
    _core(
        Family.GEMMA,
        "Gemma decoders and EmbeddingGemma",
        model_types=("gemma", "gemma2", "gemma3_text"),
        architectures=_classes("Gemma", _DECODER)
        | _classes("Gemma2", _DECODER)
        | {
            "Gemma3TextModel": Capability.EMBEDDING,
            "Gemma3ForCausalLM": Capability.GENERATION,
            "Gemma3TextForSequenceClassification": Capability.SEQUENCE_CLASSIFICATION,
        },
        pooling="mean",
    ),
    _core(
        Family.QWEN3_GUARD,
        "Qwen3Guard; its files are those of any Qwen3, so an entry has to state it",
        model_types=(),
        architectures={"Qwen3ForCausalLM": Capability.GUARD},
    ),
    _core(
        Family.SIGLIP,
        "SigLIP encoders of texts and images",
        model_types=("siglip",),
        architectures={"SiglipModel": Capability.MULTIMODAL_EMBEDDING},
    ),
    _core(
        Family.LLAMA,
        "Llama decoders, SmolLM among them",
        model_types=("llama",),
        architectures=_classes("Llama", _DECODER),
    ),
)
"""The families of the core, each under its locked name."""

_NARROWER: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    Family.MINILM.value: lambda config: config.get("hidden_size") == MINILM_HIDDEN_SIZE,
    Family.MMBERT.value: lambda config: config.get("vocab_size") == GEMMA_VOCABULARY,
}

_STATED_ONLY = frozenset({Family.QWEN3_GUARD.value})
"""Families whose files do not tell them from another; they are never recognised, only stated."""


def recognise(config: Mapping[str, Any], families: Mapping[str, FamilyDescriptor]) -> FamilyDescriptor | None:
    """The family a checkpoint belongs to, or None where that would be a guess.

    ``model_type`` decides, and where no family claims it, the class names in ``architectures``. Of the core's
    families MiniLM is a BERT 384 wide and mmBERT a ModernBERT with the Gemma vocabulary. Where several families
    still fit, the one that also claims the architecture is taken, if it is alone.

    :param config: the content of ``config.json``.
    :param families: every installed family by name.
    """
    fitting = [family for family in families.values() if family.name not in _STATED_ONLY and _fits(family, config)]
    by_type = [family for family in fitting if config.get("model_type") in family.model_types]
    claims = by_type or [family for family in fitting if _claims_architecture(family, config)]
    narrower = [family for family in claims if family.name in _NARROWER]
    for candidates in (claims, narrower, [family for family in claims if _claims_architecture(family, config)]):
        if len(candidates) == 1:
            return candidates[0]
    return None


def belongs(config: Mapping[str, Any], family: FamilyDescriptor) -> bool:
    """Whether a checkpoint may be said to be of a family: it claims the files, and they have its geometry.

    A config with neither ``model_type`` nor ``architectures`` contradicts no family.
    """
    if not config.get("model_type") and not _architectures(config):
        return True
    claimed = config.get("model_type") in family.model_types or _claims_architecture(family, config)
    silent = not family.model_types and not family.architectures
    return (claimed or silent) and _fits(family, config)


def _fits(family: FamilyDescriptor, config: Mapping[str, Any]) -> bool:
    narrower = _NARROWER.get(family.name)
    return narrower is None or narrower(config)


def _claims_architecture(family: FamilyDescriptor, config: Mapping[str, Any]) -> bool:
    return not set(_architectures(config)).isdisjoint(family.architectures or ())


def _architectures(config: Mapping[str, Any]) -> tuple[str, ...]:
    named = config.get("architectures")
    return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else ()
