"""Answering token classification requests: texts to items, logits of tokens to spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from ..catalog.schemes import read_scheme
from ..contract import (
    Aggregation,
    BackendId,
    CallContext,
    CatalogEntry,
    FloatArray,
    Span,
    TaggingResponse,
    TaggingResult,
    TokenClassificationRequest,
    check_texts,
)
from ..errors import CheckpointError, InferenceError, InvalidInputError
from ..taxonomy import Capability
from .base import EncoderBase
from .engine import WantLogits
from .envelopes import build_envelope
from .finite import check_finite
from .layers import default_layer, effective_layer, engine_layer
from .reading import Reading, TextReader, by_reading, characters_of, items_of
from .scoring import activate
from .spans import find_spans
from .tickets import ItemResult, RowWant, WorkItem
from .tokenize import EncodedText
from .windows import merge_windows

__all__ = ["PreparedTagging", "TokenClassificationTask"]

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedTagging:
    """A request ready for the batcher, with what its answer will need."""

    request: TokenClassificationRequest
    items: list[WorkItem]
    texts: tuple[str, ...]
    readings: list[Reading]
    layer: int | None


class TokenClassificationTask:
    """Finds labelled spans with a token head: softmax of ``logits / temperature`` per token, then spans.

    An entry's ``threshold`` leaves out spans with a score below it, and its ``positive_labels`` those of any other
    entity; an entity may be named there with a prefix (``B-PER``) or without (``PER``). ``truncate="window"`` reads a
    text over the limit in overlapping windows, so that its whole length is answered for.

    :param labels: the label of each output of the head; prefixes are read by :func:`~vsr_core.catalog.schemes.read_scheme`.
    :param layer: the depth served unasked; None is the native one.
    :raises CheckpointError: labels that make no scheme, ``positive_labels`` that are none of them, or a default depth
        that the model does not offer.
    """

    capability: ClassVar[Capability] = Capability.TOKEN_CLASSIFICATION

    def __init__(
        self,
        base: EncoderBase,
        *,
        backend_id: BackendId,
        labels: tuple[str, ...],
        entry: CatalogEntry,
        layer: int | None = None,
    ) -> None:
        self._base = base
        self._backend_id = backend_id
        try:
            self._scheme = read_scheme(labels)
        except CheckpointError as error:
            raise CheckpointError(f"{backend_id}: {error.message}") from None
        self._entry = entry
        self._kept = self._positive(entry.positive_labels)
        self.default_layer = default_layer(base.spec, layer, backend_id=backend_id)

    def size(self, request: TokenClassificationRequest) -> int:
        """Characters of a request, which is what its preparation costs."""
        return characters_of(request.texts)

    def prepare(self, request: TokenClassificationRequest, reader: TextReader | None = None) -> PreparedTagging:
        """Check and tokenise a request.

        :param reader: what reads the texts where other tasks read them too.
        :raises InvalidInputError: a layer or an aggregation that is not offered; the message lists what is.
        :raises InputTooLongError: where the request refuses truncation, or a text is too long even for windows.
        """
        texts = check_texts(request.texts)
        modes = get_args(Aggregation)
        if request.aggregation not in modes:
            raise InvalidInputError(
                f"aggregation={request.aggregation!r} is not offered; there are: {', '.join(map(repr, modes))}",
                param="aggregation",
            )
        layer = effective_layer(self._base.spec, request.layer, default=self.default_layer)
        readings = (reader or TextReader(offsets=True)).read(
            self._base.tokenizer, texts, max_tokens=self._base.max_tokens, truncate=request.truncate
        )
        row = RowWant(WantLogits(), engine_layer(self._base.spec, layer), self._base.adapter)
        items = items_of(readings, row)
        return PreparedTagging(request=request, items=items, texts=texts, readings=readings, layer=layer)

    def finish(self, prepared: PreparedTagging, results: Sequence[ItemResult], call: CallContext) -> TaggingResponse:
        """Make spans and their envelope of what the engine gave.

        :raises InferenceError: logits of another shape than one row per token and one column per label.
        :raises NonFiniteOutputError: NaN or infinity; the message names the texts.
        """
        for item, (logits,) in zip(prepared.items, results, strict=True):
            self._check_shape(logits, tokens=len(item.ids))
        answers = by_reading(prepared.readings, results)
        check_finite(answers, backend_id=self._backend_id, param="texts")
        aggregation = prepared.request.aggregation
        return TaggingResponse(
            envelope=build_envelope(
                self._base,
                call,
                backend_id=self._backend_id,
                inputs=[reading.report for reading in prepared.readings],
                layer=prepared.layer,
                requested_layer=prepared.request.layer,
            ),
            results=tuple(
                TaggingResult(
                    spans=self._spans(text, reading, windows, aggregation),
                    truncated=reading.report.truncated,
                    tokens=reading.report.tokens,
                )
                for text, reading, windows in zip(prepared.texts, prepared.readings, answers, strict=True)
            ),
        )

    def _positive(self, named: tuple[str, ...]) -> frozenset[str]:
        """Every name of the entities that ``positive_labels`` names."""
        known = {name for label in self._scheme.labels for name in (label.name, label.entity)}
        for name in named:
            if name not in known:
                raise CheckpointError(
                    f"{self._backend_id}: 'positive_labels' has {name!r}, which is none of the model's labels:"
                    f" {', '.join(sorted(known))}"
                )
        entities = {label.entity for label in self._scheme.labels if label.name in named or label.entity in named}
        return frozenset(
            name for label in self._scheme.labels if label.entity in entities for name in (label.name, label.entity)
        )

    def _check_shape(self, logits: FloatArray, *, tokens: int) -> None:
        expected = [tokens, len(self._scheme.labels)]
        if list(logits.shape) != expected:
            raise InferenceError(
                f"{self._backend_id} gave logits of the shape {list(logits.shape)} where {expected} was expected,"
                " a row for each token and a column for each label",
                backend_id=str(self._backend_id),
            )

    def _spans(
        self, text: str, reading: Reading, windows: Sequence[FloatArray], aggregation: Aggregation
    ) -> tuple[Span, ...]:
        texts = [sequence for sequence in reading.sequences if isinstance(sequence, EncodedText)]
        spans = find_spans(
            text,
            activate(self._own(reading, windows), "softmax", temperature=self._entry.temperature),
            offsets=self._own(reading, [each.offsets for each in texts]),
            words=self._own(reading, [each.words for each in texts]),
            scheme=self._scheme,
            aggregation=aggregation,
        )
        threshold = self._entry.threshold
        return tuple(
            span
            for span in spans
            if (threshold is None or span.score >= threshold) and (not self._kept or span.label in self._kept)
        )

    def _own(self, reading: Reading, values: Sequence[npt.NDArray[Scalar] | None]) -> npt.NDArray[Scalar]:
        """One row for each of the text's own tokens, of one array per window with the special tokens around each."""
        before, after = self._base.tokenizer.frame
        own = [value[before : len(value) - after] for value in values if value is not None]
        return merge_windows(own, reading.starts)
