"""Logits of a classification head into calibrated scores, labels and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..catalog.labels import placeholders
from ..catalog.scores import calibration_problems, label_problems
from ..contract import Activation, BackendId, ClassificationResult
from ..errors import CheckpointError, InferenceError

__all__ = ["Scorer", "activate", "check_calibration"]

Float64Array = npt.NDArray[np.float64]

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
        problems = label_problems(self._labels, count=None, activation=self._activation, positive=positive_labels)
        if problems:
            raise CheckpointError(f"{backend_id}: {problems[0]}")

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
        names = self._labels or placeholders(len(scores))
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
    problems = calibration_problems(activation, temperature=temperature, threshold=threshold)
    if activation is None or problems:
        raise CheckpointError(f"{backend_id}: {problems[0]}")
    return activation
