"""Logits of a classification head into calibrated scores, labels and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..contract import Activation, BackendId, ClassificationResult
from ..errors import CheckpointError, InferenceError

__all__ = ["Scorer", "activate", "check_calibration"]

Float64Array = npt.NDArray[np.float64]

_ACTIVATIONS: tuple[Activation, ...] = ("softmax", "sigmoid", "none")
_NO_DISTRIBUTION = "the model gives raw scores, which are no probabilities"


def activate(logits: npt.NDArray[np.floating], activation: Activation, *, temperature: float = 1.0) -> Float64Array:
    """Scores of logits ``[..., labels]`` in float64: ``softmax(logits / temperature)``, or sigmoid, or the logits.

    The maximum is subtracted before anything can overflow, so extreme logits and temperatures stay exact.
    """
    raw = logits.astype(np.float64)
    if activation == "none":
        return raw
    with np.errstate(over="ignore"):  # a quotient beyond float64 is infinite, and its score 0 or 1
        if activation == "softmax":
            powers = np.exp((raw - raw.max(axis=-1, keepdims=True)) / temperature)
            return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
        scaled = raw / temperature
    decay = np.exp(-np.abs(scaled))
    return np.where(scaled >= 0, 1.0, decay) / (1.0 + decay)


class Scorer:
    """Makes the results of one head: what its labels are called, how it is calibrated, and what counts as passed.

    :param labels: label names in index order; where there are none they are ``LABEL_0``, ``LABEL_1`` and so on, as in
        transformers.
    :param activation: what turns logits into scores; with ``none`` a score is the raw logit.
    :param temperature: divides logits before the activation.
    :param threshold: the score a result must reach to pass; None gives no verdict.
    :param positive_labels: the labels that may pass; empty means all.
    :raises CheckpointError: these contradict one another.
    """

    def __init__(
        self,
        labels: Sequence[str] | None,
        *,
        backend_id: BackendId,
        activation: Activation | None,
        temperature: float = 1.0,
        threshold: float | None = None,
        positive_labels: Sequence[str] = (),
    ) -> None:
        self._backend_id = backend_id
        self._labels = tuple(labels) if labels else None
        self._positive = frozenset(positive_labels)
        self._temperature = temperature
        self._threshold = threshold
        self._activation = check_calibration(
            activation, backend_id=backend_id, temperature=temperature, threshold=threshold
        )
        if problem := _label_problem(self._labels, positive_labels, self._activation):
            raise CheckpointError(f"{backend_id}: {problem}")

    @property
    def activation(self) -> Activation:
        """What turns logits into scores."""
        return self._activation

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Label names in index order, None where they have none of their own."""
        return self._labels

    def check(self, logits: npt.NDArray[np.floating]) -> None:
        """Refuse logits that are not one for each label.

        :raises InferenceError: names both counts.
        """
        expected = "labels" if self._labels is None else str(len(self._labels))
        if logits.ndim != 1 or not len(logits):
            found = f"logits of the shape {list(logits.shape)} where [{expected}] was expected"
        elif self._labels is not None and len(logits) != len(self._labels):
            found = f"{len(logits)} logits for {expected} labels: state as many 'labels' as the head has outputs"
        else:
            return
        raise InferenceError(f"{self._backend_id} gave {found}", backend_id=str(self._backend_id))

    def scores(self, logits: npt.NDArray[np.floating]) -> Float64Array:
        """Calibrated scores of logits ``[labels]``."""
        return activate(logits, self._activation, temperature=self._temperature)

    def result(self, logits: npt.NDArray[np.floating]) -> ClassificationResult:
        """The label with the highest score, the first of them on a tie, with the distribution over all labels."""
        scores = self.scores(logits).tolist()
        names = self._labels or [f"LABEL_{index}" for index in range(len(scores))]
        score = max(scores)
        label = names[scores.index(score)]
        raw = self._activation == "none"
        return ClassificationResult(
            label=label,
            score=score,
            distribution=None if raw else dict(zip(names, scores, strict=True)),
            distribution_reason=_NO_DISTRIBUTION if raw else None,
            passed=self._passed(label, score),
        )

    def _passed(self, label: str, score: float) -> bool | None:
        if self._threshold is None:
            return None
        return score >= self._threshold and (not self._positive or label in self._positive)


def check_calibration(
    activation: Activation | None, *, backend_id: BackendId, temperature: float, threshold: float | None
) -> Activation:
    """Return the activation, if temperature and threshold make sense with it.

    :raises CheckpointError: there is none, or they do not.
    """
    if activation not in _ACTIVATIONS:
        problem = (
            f"no file states how logits become scores, and {activation!r} does not: set 'problem_type' in config.json"
        )
    elif not (math.isfinite(temperature) and temperature > 0):
        problem = f"temperature={temperature} cannot divide logits: state a 'temperature' above 0"
    elif activation == "none" and temperature != 1.0:
        problem = f"temperature={temperature} calibrates probabilities, and the model gives raw scores: leave it out"
    elif threshold is not None and not _reachable(threshold, activation):
        problem = f"threshold={threshold} is no score the model can give: state a 'threshold' from 0 to 1"
    else:
        return activation
    raise CheckpointError(f"{backend_id}: {problem}")


def _reachable(threshold: float, activation: Activation) -> bool:
    return math.isfinite(threshold) if activation == "none" else 0 <= threshold <= 1


def _label_problem(labels: tuple[str, ...] | None, positive: Sequence[str], activation: Activation) -> str | None:
    if labels is None:
        return f"positive_labels={list(positive)} need names: state the 'labels' too" if positive else None
    if len(labels) == 1 and activation == "softmax":
        return "a softmax over one label is always 1: set 'problem_type' in config.json, or state all 'labels'"
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        return f"labels: {twice[0]!r} is the name of two labels: state one name each"
    unknown = [label for label in positive if label not in labels]
    if unknown:
        return f"positive_labels: {', '.join(map(repr, unknown))} are not among the labels {', '.join(labels)}"
    return None
