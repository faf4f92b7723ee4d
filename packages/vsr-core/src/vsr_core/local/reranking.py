"""Answering reranking requests: query and documents to items, logits to documents in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..contract import (
    BackendId,
    CallContext,
    FloatArray,
    RerankingRequest,
    RerankingResponse,
    RerankResult,
    check_texts,
)
from ..errors import CheckpointError, InferenceError, InvalidInputError
from ..taxonomy import Capability
from .base import EncoderBase
from .engine import WantLogits
from .envelopes import build_envelope
from .finite import check_finite
from .layers import default_layer, engine_layer
from .pairs import PairNames
from .reading import Reading, by_reading, check_pair_room, items_of, read_pairs
from .scoring import Scorer
from .tickets import ItemResult, RowWant, WorkItem

__all__ = ["PreparedReranking", "RerankingTask"]

_NAMES = PairNames(pair="documents[{}]", first="query", second="documents[{}]")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedReranking:
    """A request ready for the batcher, with what its answer will need."""

    request: RerankingRequest
    items: list[WorkItem]
    readings: list[Reading]


class RerankingTask:
    """Scores documents against a query on a base whose head has one output.

    A score is the head's activation of that output, and depends on no other document. A long document read in
    windows has the score of its best window (MaxP, Dai and Callan 2019).

    :param layer: the depth served; None is the native one.
    :raises CheckpointError: the head has more than one output or no usable activation, or the depth is not offered.
    """

    capability: ClassVar[Capability] = Capability.RERANKING

    def __init__(self, base: EncoderBase, *, backend_id: BackendId, scorer: Scorer, layer: int | None = None) -> None:
        self._base = base
        self._backend_id = backend_id
        self._scorer = scorer
        self._layer = default_layer(base.spec, layer, backend_id=backend_id)
        outputs = 1 if scorer.labels is None else len(scorer.labels)
        if outputs != 1 or scorer.activation == "softmax":
            head = f"{outputs} outputs" if outputs != 1 else "a softmax over its outputs"
            raise CheckpointError(
                f"{backend_id}: a reranker's head has one output, with 'sigmoid' or no activation, and this one has"
                f" {head}: serve the model as 'pair_classification'"
            )
        check_pair_room(base, backend_id=backend_id)

    def size(self, request: RerankingRequest) -> int:
        """Characters of a request, which is what its preparation costs: the query counts with each document."""
        query: object = request.query
        documents: object = request.documents
        once = len(query) if isinstance(query, str) else 0
        if not isinstance(documents, list | tuple):
            return once + (len(documents) if isinstance(documents, str) else 0)
        return sum([once + len(text) for text in documents if isinstance(text, str)])

    def prepare(self, request: RerankingRequest) -> PreparedReranking:
        """Check and tokenise a request.

        :raises InvalidInputError: what is no text, or ``top_n`` below 1.
        :raises InputTooLongError: where the request refuses truncation, or windows do not cover a document.
        """
        query = _check_query(request.query)
        documents = check_texts(request.documents, "documents")
        if request.top_n is not None and request.top_n < 1:
            raise InvalidInputError(f"top_n={request.top_n} asks for no document: use 1 or more", param="top_n")
        readings = read_pairs(
            self._base.tokenizer,
            [(query, document) for document in documents],
            max_tokens=self._base.max_tokens,
            truncate=request.truncate,
            names=_NAMES,
        )
        row = RowWant(WantLogits(), engine_layer(self._base.spec, self._layer), self._base.adapter)
        return PreparedReranking(request=request, items=items_of(readings, row), readings=readings)

    def finish(
        self, prepared: PreparedReranking, results: Sequence[ItemResult], call: CallContext
    ) -> RerankingResponse:
        """Put the documents in order by what the engine gave.

        :raises InferenceError: not one logit for each document.
        :raises NonFiniteOutputError: NaN or infinity; the message names the documents.
        """
        answers = by_reading(prepared.readings, results)
        for windows in answers:
            for row in windows:
                self._check(row)
        check_finite(answers, backend_id=self._backend_id, param="documents")
        scores = [max(self._scorer.scores(row).item() for row in windows) for windows in answers]
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)  # stable: ties keep their order
        return RerankingResponse(
            envelope=build_envelope(
                self._base,
                call,
                backend_id=self._backend_id,
                inputs=[reading.report for reading in prepared.readings],
                layer=self._layer,
            ),
            results=tuple(RerankResult(index=index, score=scores[index]) for index in order[: prepared.request.top_n]),
            score_kind="logit" if self._scorer.activation == "none" else "probability",
        )

    def _check(self, logits: FloatArray) -> None:
        if logits.shape != (1,):
            raise InferenceError(
                f"{self._backend_id} gave logits of the shape {list(logits.shape)} where [1] was expected",
                backend_id=str(self._backend_id),
            )


def _check_query(query: object) -> str:
    if not isinstance(query, str):
        raise InvalidInputError(f"query must be a string, not {type(query).__name__}", param="query")
    try:
        return check_texts(query, "query")[0]
    except InvalidInputError as error:
        raise InvalidInputError(error.message.replace("query[0]", "query", 1), param="query") from None
