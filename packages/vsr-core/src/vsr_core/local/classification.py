"""Answering classification requests: texts or pairs to items, logits to labels and distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..contract import (
    BackendId,
    CallContext,
    ClassificationResponse,
    ClassificationResult,
    FloatArray,
    PairClassificationRequest,
    SequenceClassificationRequest,
    check_pairs,
    check_texts,
)
from ..taxonomy import Capability
from .base import EncoderBase
from .engine import WantLogits
from .envelopes import build_envelope
from .finite import check_finite
from .layers import default_layer, effective_layer, engine_layer
from .pairs import PairNames
from .reading import Reading, TextReader, by_reading, characters_of, check_pair_room, items_of, read_pairs
from .scoring import Scorer
from .tickets import ItemResult, RowWant, WorkItem

__all__ = ["PairClassificationTask", "PreparedClassification", "SequenceClassificationTask"]

_Request = SequenceClassificationRequest | PairClassificationRequest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedClassification:
    """A request ready for the batcher, with what its answer will need."""

    request: _Request
    items: list[WorkItem]
    readings: list[Reading]
    layer: int | None


class _Classifier:
    """What the classification of texts and that of pairs have in common.

    The logits of a long input read in windows are the mean of the windows' logits, each weighted by the tokens that
    it is the first to read.

    :param layer: the depth served unasked; None is the native one.
    :raises CheckpointError: the model does not offer that depth.
    """

    param: ClassVar[str]

    def __init__(self, base: EncoderBase, *, backend_id: BackendId, scorer: Scorer, layer: int | None = None) -> None:
        self._base = base
        self._backend_id = backend_id
        self._scorer = scorer
        self._default_layer = default_layer(base.spec, layer, backend_id=backend_id)

    def finish(
        self, prepared: PreparedClassification, results: Sequence[ItemResult], call: CallContext
    ) -> ClassificationResponse:
        """Make labels and their envelope of what the engine gave.

        :raises InferenceError: not one logit for each label.
        :raises NonFiniteOutputError: NaN or infinity; the message names the inputs.
        """
        answers = by_reading(prepared.readings, results)
        for logits in answers:
            for row in logits:
                self._scorer.check(row)
        check_finite(answers, backend_id=self._backend_id, param=self.param)
        pairs = zip(prepared.readings, answers, strict=True)
        return ClassificationResponse(
            envelope=build_envelope(
                self._base,
                call,
                backend_id=self._backend_id,
                inputs=[reading.report for reading in prepared.readings],
                layer=prepared.layer,
                requested_layer=prepared.request.layer,
            ),
            results=tuple(self._result(reading, logits, prepared.request) for reading, logits in pairs),
        )

    def _prepared(
        self,
        request: _Request,
        readings: list[Reading],
        layer: int | None,
    ) -> PreparedClassification:
        row = RowWant(WantLogits(), engine_layer(self._base.spec, layer), self._base.adapter)
        return PreparedClassification(request=request, items=items_of(readings, row), readings=readings, layer=layer)

    def _layer(self, asked: int | None) -> int | None:
        return effective_layer(self._base.spec, asked, default=self._default_layer)

    def _result(self, reading: Reading, windows: list[FloatArray], request: _Request) -> ClassificationResult:
        logits = _merge(windows, reading.fresh)
        return replace(
            self._scorer.result(logits),
            logits=tuple(logits.tolist()) if request.logits else None,
            truncated=reading.report.truncated,
            tokens=reading.report.tokens,
        )


class SequenceClassificationTask(_Classifier):
    """Classifies texts on a base. An empty or blank text is classified by its special tokens alone."""

    capability: ClassVar[Capability] = Capability.SEQUENCE_CLASSIFICATION
    param: ClassVar[str] = "texts"

    def size(self, request: SequenceClassificationRequest) -> int:
        """Characters of a request, which is what its preparation costs."""
        return characters_of(request.texts)

    def prepare(
        self, request: SequenceClassificationRequest, reader: TextReader | None = None
    ) -> PreparedClassification:
        """Check and tokenise a request.

        :param reader: what reads the texts where other tasks read them too.
        :raises InvalidInputError: what is no text, or a layer that is not offered.
        :raises InputTooLongError: where the request refuses truncation, or windows do not cover a text.
        """
        texts, layer = check_texts(request.texts), self._layer(request.layer)
        readings = (reader or TextReader(offsets=False)).read(
            self._base.tokenizer, texts, max_tokens=self._base.max_tokens, truncate=request.truncate
        )
        return self._prepared(request, readings, layer)


class PairClassificationTask(_Classifier):
    """Classifies pairs of texts on a base."""

    capability: ClassVar[Capability] = Capability.PAIR_CLASSIFICATION
    param: ClassVar[str] = "pairs"

    def __init__(self, base: EncoderBase, *, backend_id: BackendId, scorer: Scorer, layer: int | None = None) -> None:
        super().__init__(base, backend_id=backend_id, scorer=scorer, layer=layer)
        check_pair_room(base, backend_id=backend_id)

    def size(self, request: PairClassificationRequest) -> int:
        """Characters of a request, which is what its preparation costs."""
        pairs: object = request.pairs
        if not isinstance(pairs, list | tuple):
            return 0
        texts = [text for pair in pairs for text in (pair if isinstance(pair, list | tuple) else (pair,))]
        return sum([len(text) for text in texts if isinstance(text, str)])

    def prepare(self, request: PairClassificationRequest) -> PreparedClassification:
        """Check and tokenise a request.

        :raises InvalidInputError: what is no pair of texts, or a layer that is not offered.
        :raises InputTooLongError: where the request refuses truncation, or windows do not cover a pair.
        """
        pairs, layer = check_pairs(request.pairs), self._layer(request.layer)
        readings = read_pairs(
            self._base.tokenizer,
            pairs,
            max_tokens=self._base.max_tokens,
            truncate=request.truncate,
            names=PairNames(),
        )
        return self._prepared(request, readings, layer)


def _merge(windows: list[FloatArray], fresh: tuple[int, ...]) -> npt.NDArray[np.floating]:
    """The logits of one input: the windows' mean in float64, weighted by their fresh tokens."""
    return windows[0] if len(windows) == 1 else np.average(windows, axis=0, weights=fresh)
