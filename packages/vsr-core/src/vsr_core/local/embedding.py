"""Answering embedding requests: texts to items, pooled rows to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..contract import (
    BackendId,
    CallContext,
    EmbeddingRequest,
    EmbeddingResponse,
    Envelope,
    FloatArray,
    InputReport,
    ModelSpec,
    PoolingSpec,
    check_texts,
)
from ..errors import CheckpointError, InferenceError, InvalidInputError
from ..taxonomy import Capability
from .base import EncoderBase
from .dense import DenseModule, apply_dense
from .engine import WantPooled
from .envelopes import build_envelope
from .finite import withheld
from .layers import default_layer, effective_layer, engine_layer
from .pooling import l2_normalize, non_finite_rows, pooled_width, truncate_dimensions
from .reading import characters_of
from .space import compatibility_key, space_of
from .tickets import ItemResult, RowWant, WorkItem
from .tokenize import EncodedText

__all__ = ["EmbeddingTask", "PreparedEmbedding"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedEmbedding:
    """A request ready for the batcher, with what its answer will need."""

    request: EmbeddingRequest
    items: list[WorkItem]
    texts: list[EncodedText]
    dimensions: int
    layer: int | None


class EmbeddingTask:
    """Embeds texts on a base. The order is: exit layer, pool, dense modules, truncate, normalise.

    An empty or blank text is embedded like any other: its vector is that of the special tokens alone.

    :param dimensions: the width served unasked; None is the native one. :param layer: the depth, likewise.
    :raises CheckpointError: the model has no pooling, or does not offer those defaults.
    """

    capability: ClassVar[Capability] = Capability.EMBEDDING

    def __init__(
        self,
        base: EncoderBase,
        *,
        backend_id: BackendId,
        dense: Sequence[DenseModule] = (),
        dimensions: int | None = None,
        layer: int | None = None,
    ) -> None:
        self._base = base
        self._backend_id = backend_id
        self._dense = tuple(dense)
        self._spec, self._pooling = _complete(base.spec, backend_id, self._dense)
        self._want = WantPooled(self._pooling)
        self.key = compatibility_key(self._spec, dtype=base.identity.dtype.actual)
        self.default_layer = default_layer(self._spec, layer, backend_id=backend_id)
        try:
            self.default_dimensions = self._width(dimensions, self._spec.native_dimensions)
        except InvalidInputError as error:
            raise CheckpointError(f"{backend_id}: the default does not hold: {error.message}") from None

    @property
    def spec(self) -> ModelSpec:
        """The model's spec with its dimensions filled in."""
        return self._spec

    def size(self, request: EmbeddingRequest) -> int:
        """Characters of a request, which is what its preparation costs."""
        return characters_of(request.texts)

    def prepare(self, request: EmbeddingRequest) -> PreparedEmbedding:
        """Check and tokenise a request.

        :raises InvalidInputError: a prompt, dimension or layer that is not offered; the message lists what is.
        :raises InputTooLongError: where the request refuses truncation.
        """
        if request.truncate == "window":
            raise InvalidInputError(
                "truncate='window' does not apply to embedding, which gives one vector per text:"
                " use 'error', 'end' or 'start'",
                param="truncate",
            )
        texts = check_texts(request.texts)
        dimensions = self._width(request.dimensions, self.default_dimensions)
        layer = effective_layer(self._spec, request.layer, default=self.default_layer)
        encoded = self._base.tokenizer.encode(
            texts,
            prompt=self._prompt(request.prompt),
            max_tokens=self._base.max_tokens,
            truncate=request.truncate,
        )
        rows = (RowWant(self._want, engine_layer(self._spec, layer), self._base.adapter),)
        items = [WorkItem(text.ids, text.type_ids, text.prompt_tokens, rows) for text in encoded]
        return PreparedEmbedding(request=request, items=items, texts=encoded, dimensions=dimensions, layer=layer)

    def finish(
        self, prepared: PreparedEmbedding, results: Sequence[ItemResult], call: CallContext
    ) -> EmbeddingResponse:
        """Make vectors and their envelope of what the engine gave.

        :raises NonFiniteOutputError: NaN or infinity; the message names the texts.
        """
        vectors = apply_dense(self._stack([result[0] for result in results]), self._dense)
        bad = non_finite_rows(vectors)
        if bad:
            raise withheld(bad, backend_id=self._backend_id, param="texts")
        vectors = truncate_dimensions(vectors, prepared.dimensions)
        if self._spec.normalize:
            vectors = l2_normalize(vectors)
        return EmbeddingResponse(
            envelope=self._envelope(prepared, call),
            vectors=vectors,
            normalized=bool(self._spec.normalize),
            space=space_of(self.key, self._spec, dimensions=prepared.dimensions, layer=prepared.layer),
        )

    def _stack(self, rows: list[FloatArray]) -> FloatArray:
        width = self._dense[0].spec.in_features if self._dense else self._spec.native_dimensions
        if any(row.shape != (width,) for row in rows):
            found = sorted({str(list(row.shape)) for row in rows})
            raise InferenceError(
                f"{self._backend_id} gave vectors of the shape {', '.join(found)} where [{width}] was expected",
                backend_id=str(self._backend_id),
            )
        return np.concatenate(rows).reshape(len(rows), -1)

    def _envelope(self, prepared: PreparedEmbedding, call: CallContext) -> Envelope:
        inputs = [
            InputReport(tokens=len(text.ids), total_tokens=text.total_tokens, truncated=text.truncated)
            for text in prepared.texts
        ]
        return build_envelope(
            self._base,
            call,
            backend_id=self._backend_id,
            inputs=inputs,
            layer=prepared.layer,
            requested_layer=prepared.request.layer,
            dimensions=prepared.dimensions,
            requested_dimensions=prepared.request.dimensions,
        )

    def _prompt(self, name: str | None) -> str:
        prompts = self._spec.prompts or {}
        if name is None:
            name = self._spec.default_prompt
            if name is None:
                return ""
        if name not in prompts:
            offered = ", ".join(map(repr, sorted(prompts))) or "none"
            raise InvalidInputError(f"no prompt is called {name!r}; there are: {offered}", param="prompt")
        return prompts[name]

    def _width(self, asked: int | None, default: int | None) -> int:
        offered = self._spec.dimensions
        if asked is None:
            asked = default
        if asked is None or asked not in offered:
            raise InvalidInputError(
                f"dimensions={asked} is not offered; there are: {', '.join(map(str, offered))}", param="dimensions"
            )
        return asked


def _complete(spec: ModelSpec, backend_id: BackendId, dense: Sequence[DenseModule]) -> tuple[ModelSpec, PoolingSpec]:
    """Fill in the dimensions that follow from the rest of the spec."""
    if spec.pooling is None or not spec.pooling.modes:
        raise CheckpointError(f"{backend_id}: no file states the pooling: set 'pooling' in the catalog entry")
    if spec.default_prompt is not None and spec.default_prompt not in (spec.prompts or {}):
        raise CheckpointError(f"{backend_id}: the default prompt {spec.default_prompt!r} is not among its prompts")
    native = spec.native_dimensions
    if dense:
        native = native or dense[-1].spec.out_features
    elif native is None and spec.hidden_size is not None:
        native = pooled_width(spec.hidden_size, spec.pooling)
    if native is None:
        raise CheckpointError(f"{backend_id}: no file states the hidden size: 'hidden_size' is missing in config.json")
    return replace(spec, native_dimensions=native, dimensions=spec.dimensions or (native,)), spec.pooling
