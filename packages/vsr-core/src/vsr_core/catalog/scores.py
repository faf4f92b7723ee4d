"""Which labels, temperatures and thresholds make sense with which head."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Final, get_args

from ..contract import Activation, CatalogEntry
from ..errors import CheckpointError
from ..taxonomy import Capability
from .labels import names_problem, placeholders
from .schemes import OUTSIDE, read_scheme

__all__ = ["calibration_problems", "label_problems", "score_problems"]

_PLACEHOLDER: Final = re.compile(r"LABEL_(?:0|[1-9]\d*)", re.ASCII)

_VECTORS: Final = frozenset(
    {
        Capability.EMBEDDING,
        Capability.MULTIMODAL_EMBEDDING,
        Capability.SIMILARITY,
        Capability.BIENCODER_RERANKING,
    }
)
_CLASSIFIERS: Final = frozenset({Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION})
_HEADS: Final = _CLASSIFIERS | {Capability.TOKEN_CLASSIFICATION, Capability.RERANKING}


def score_problems(
    entry: CatalogEntry,
    *,
    capabilities: Collection[Capability],
    labels: tuple[str, ...] | None,
    count: int | None,
    activation: Activation | None,
) -> list[str]:
    """What of an entry does not go with the head of its model, each as ``key: what is wrong; the way out``.

    :param labels: the names of the labels; None where they have none, or where those of the entry are wrong.
    :param count: how many outputs the head has, where that is known.
    :param activation: None for a generative model, which has no head.
    """
    problems = _without_effect(entry, frozenset(capabilities))
    if activation is None or _HEADS.isdisjoint(capabilities):
        return problems
    threshold = None if problems else entry.threshold
    problems += calibration_problems(activation, temperature=entry.temperature, threshold=threshold)
    if Capability.RERANKING in capabilities:
        problems += _reranker_problems(count if count is not None or labels is None else len(labels), activation)
    if labels is None and entry.labels is not None:
        return problems  # what is wrong with those is said already, and nothing can be compared with them
    if Capability.TOKEN_CLASSIFICATION in capabilities:
        problems += _tagger_problems(labels, entry.positive_labels)
    if not _CLASSIFIERS.isdisjoint(capabilities):
        problems += label_problems(labels, count=count, activation=activation, positive=entry.positive_labels)
    return problems


def calibration_problems(activation: Activation | None, *, temperature: float, threshold: float | None) -> list[str]:
    """What is wrong with how logits become scores, and with what is asked of these.

    :param temperature: divides logits before the activation.
    :param threshold: the score from which a result has passed.
    """
    if activation not in get_args(Activation):
        return [
            f"activation: no file states how logits become scores, and {activation!r} does not; "
            "set 'problem_type' in config.json"
        ]
    problems = []
    if not (math.isfinite(temperature) and temperature > 0):
        problems.append(f"calibration.temperature: {temperature:g} cannot divide logits; state one above 0")
    elif activation == "none" and temperature != 1.0:
        problems.append(
            f"calibration.temperature: {temperature:g} calibrates probabilities, and the model gives raw scores; "
            "leave it out"
        )
    if threshold is not None and activation == "none" and not math.isfinite(threshold):
        problems.append(f"threshold: {threshold:g} is no score the model can give; state a finite number")
    elif threshold is not None and activation != "none" and not 0 <= threshold <= 1:
        problems.append(f"threshold: {threshold:g} is no probability; state one from 0 to 1")
    return problems


def label_problems(
    labels: tuple[str, ...] | None, *, count: int | None, activation: Activation, positive: Sequence[str]
) -> list[str]:
    """What is wrong with the labels of a classifier, and with those that may pass.

    :param labels: their names; where there are none, they are :func:`~vsr_core.catalog.labels.placeholders`.
    :param count: how many outputs the head has, where that is known.
    """
    problems = []
    outputs = count if count is not None or labels is None else len(labels)
    if outputs == 1 and activation == "softmax":
        problems.append(
            "labels: a softmax over one label is always 1; set 'problem_type' in config.json, or state all labels"
        )
    if labels is not None and (wrong := names_problem(labels)):
        problems.append(f"labels: {wrong}")
    names = labels if labels is not None or count is None else placeholders(count)
    known = _PLACEHOLDER.fullmatch if names is None else names.__contains__
    unknown = [name for name in positive if not known(name)]
    if unknown:
        problems.append(_unknown(unknown, names or ("LABEL_0, LABEL_1 and so on",)))
    return problems


def _without_effect(entry: CatalogEntry, capabilities: frozenset[Capability]) -> list[str]:
    """Statements about scores that no answer of the model would show."""
    if not capabilities or not capabilities <= _VECTORS | {Capability.RERANKING}:
        return []
    ranks = Capability.RERANKING in capabilities
    answer = "a ranking does not say which documents passed" if ranks else "vectors have no scores"
    stated = {"threshold": entry.threshold is not None, "positive_labels": bool(entry.positive_labels)}
    if not ranks:
        stated |= {"labels": bool(entry.labels), "calibration.temperature": entry.temperature != 1.0}
    return [f"{key}: has no effect, since {answer}; leave it out" for key, is_stated in stated.items() if is_stated]


def _tagger_problems(labels: tuple[str, ...] | None, positive: Sequence[str]) -> list[str]:
    if labels is None:
        return ["labels: no file names what the head marks; state 'labels'"]
    try:
        scheme = read_scheme(labels)
    except CheckpointError as error:
        return [f"labels: {error.message}"]
    known = {name for label in scheme.labels for name in (label.name, label.entity)}  # B-PER is known as PER too
    unknown = [name for name in positive if name not in known]
    outside = [name for name in positive if name.upper() == OUTSIDE]
    problems = [_unknown(unknown, labels)] if unknown else []
    if outside:
        problems.append(f"positive_labels: {outside[0]} stands for no span, so none could pass; leave it out")
    return problems


def _reranker_problems(outputs: int | None, activation: Activation) -> list[str]:
    if outputs in (None, 1) and activation != "softmax":
        return []
    head = f"{outputs} outputs" if outputs not in (None, 1) else "a softmax over its outputs"
    return [
        "capabilities: a reranker's head has one output, with 'sigmoid' or no activation, and this one has "
        f"{head}; serve the model as 'pair_classification'"
    ]


def _unknown(names: Sequence[str], known: Sequence[str]) -> str:
    few = [*known[:6], f"... {len(known)} in all"] if len(known) > 6 else known
    return f"positive_labels: {', '.join(names[:6])} are none of the model's labels ({', '.join(few)})"
