"""Which families there is a forward for, and how each is built; names alone, so that declaring imports no framework."""

from __future__ import annotations

from vsr_core.contract import FamilyDescriptor
from vsr_core.taxonomy import Capability, Family

__all__ = ["BORROWED", "CONTRIBUTED", "OWN", "ROBERTAS", "full_depth_only"]

_ENCODER = {
    "Model": Capability.EMBEDDING,
    "ForMaskedLM": Capability.EMBEDDING,
    "ForSequenceClassification": Capability.SEQUENCE_CLASSIFICATION,
    "ForTokenClassification": Capability.TOKEN_CLASSIFICATION,
}


def _family(name: str, prefix: str, summary: str, *, after_padding: bool = False) -> FamilyDescriptor:
    return FamilyDescriptor(
        name=name,
        contract="1.0",
        summary=summary,
        model_types=(name,),
        architectures={prefix + suffix: capability for suffix, capability in _ENCODER.items()},
        positions_after_padding=after_padding,
    )


CONTRIBUTED = (
    _family("albert", "Albert", "ALBERT encoders, whose layers share their weights"),
    _family("camembert", "Camembert", "French RoBERTa encoders", after_padding=True),
    _family("distilbert", "DistilBert", "DistilBERT encoders"),
    _family("electra", "Electra", "ELECTRA discriminators"),
    _family("mpnet", "MPNet", "MPNet encoders with relative positions", after_padding=True),
)
"""Families the core does not know; their encoders are run here."""

ROBERTAS = (Family.ROBERTA.value, Family.XLM_ROBERTA.value, "camembert")
"""Families of RoBERTa's architecture."""

OWN = (Family.BERT.value, Family.MINILM.value, *ROBERTAS, Family.MODERNBERT.value, Family.MMBERT.value)
"""Families with a forward of our own: packed, and able to leave at any layer."""

BORROWED = (Family.DEBERTA.value, "albert", "distilbert", "electra", "mpnet")
"""Families that transformers' code runs."""


def full_depth_only(family: str) -> str:
    """Why a borrowed family cannot be left at a layer."""
    return f"{family} runs in transformers' own code, to its full depth"
