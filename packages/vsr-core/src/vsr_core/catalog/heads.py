"""What a classifier's configuration says of its head: labels, activation, and whether it reranks or judges pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..contract import Activation
from ..taxonomy import Capability
from .documents import Document
from .labels import label_count, labels_of_config
from .safetensors_header import TensorEntry
from .sentence_transformers import CE_ACTIVATIONS, SentenceTransformer

__all__ = ["Head", "head_rows", "read_head"]

_HEAD_WEIGHTS = ("classifier.weight", "classifier.out_proj.weight", "score.weight")
_NLI = frozenset({"entailment", "neutral", "contradiction"})
_ACTIVATION_OF_PROBLEM: Mapping[str, Activation] = {
    "regression": "none",
    "multi_label_classification": "sigmoid",
    "single_label_classification": "softmax",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A classification head as its files describe it.

    :param rows: how many outputs it has, None where nothing says.
    """

    capabilities: tuple[Capability, ...]
    labels: tuple[str, ...] | None = None
    rows: int | None = None
    activation: Activation | None = None
    refusals: tuple[str, ...] = ()


def head_rows(tensors: Mapping[str, TensorEntry]) -> int | None:
    """How many outputs the head among these tensors has, None where there is none of a known name."""
    for name, tensor in tensors.items():
        if name.removeprefix("base_model.model.") in _HEAD_WEIGHTS and len(tensor.shape) == 2:
            return tensor.shape[0]
    return None


def read_head(
    config: Document | None, capability: Capability, *, sentence: SentenceTransformer | None, rows: int | None
) -> Head:
    """Read a head: labels from ``id2label``, the activation as transformers and CrossEncoder choose it.

    ``problem_type`` decides on the activation: none for regression, sigmoid for several labels at once or for a
    single label, softmax otherwise. A single label with a CrossEncoder's activation is a reranker; the three labels
    of natural language inference make a pair classifier too.

    :param rows: outputs by the shape of the weights, where it is known.
    :raises CheckpointError: labels that are not numbered 0 to n-1.
    """
    if config is None:
        return Head(capabilities=(capability,), rows=rows)
    refusals: list[str] = []
    labels = labels_of_config(config)
    claimed = label_count(config)
    if rows is not None and claimed is not None and claimed != rows:
        refusals.append(f"{config.path.name} has {claimed} labels, the head in the weights has {rows}")
    count = rows if rows is not None else claimed
    if capability is Capability.TOKEN_CLASSIFICATION:
        return Head(
            capabilities=(capability,), labels=labels, rows=count, activation="softmax", refusals=tuple(refusals)
        )
    stated = _cross_encoder_activation(config, sentence)
    if count == 1 and stated is not None:
        activation = CE_ACTIVATIONS.get(stated) if stated else "sigmoid"
        if activation is None:
            refusals.append(f"{config.path.name}: the activation {stated!r} is not supported")
        return Head(
            capabilities=(Capability.RERANKING,),
            labels=labels,
            rows=count,
            activation=activation,
            refusals=tuple(refusals),
        )
    return Head(
        capabilities=(capability, Capability.PAIR_CLASSIFICATION) if _judges_pairs(labels) else (capability,),
        labels=labels,
        rows=count,
        activation=_activation(config, count, refusals),
        refusals=tuple(refusals),
    )


def _activation(config: Document, count: int | None, refusals: list[str]) -> Activation:
    problem = config.text("problem_type")
    if problem is not None and problem not in _ACTIVATION_OF_PROBLEM:
        refusals.append(f"{config.path.name}: the problem type {problem!r} is not supported")
    if problem != "regression" and count == 1:
        return "sigmoid"
    return _ACTIVATION_OF_PROBLEM.get(problem or "", "softmax")


def _cross_encoder_activation(config: Document, sentence: SentenceTransformer | None) -> str | None:
    """The activation a CrossEncoder was saved with, ``""`` where it is one and names none, None where it is none."""
    section = config.section("sentence_transformers")
    named = (section.text("activation_fn") if section else None) or config.text("sbert_ce_default_activation_function")
    if named is None and sentence is not None and sentence.cross_encoder:
        return sentence.activation or ""
    return named


def _judges_pairs(labels: tuple[str, ...] | None) -> bool:
    return labels is not None and {label.lower() for label in labels} == _NLI
