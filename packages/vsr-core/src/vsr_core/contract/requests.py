"""What can be asked: one frozen dataclass per operation, typed by its response.

``infer(EmbeddingRequest(...))`` is known to give an ``EmbeddingResponse``. A request carries no address: the
logical name is resolved, and gone, before an adapter sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from ..errors import InvalidInputError
from ..taxonomy import Capability
from .messages import AudioPart, ImagePart, Message, TextPart, ToolSpec
from .responses import (
    ClassificationResponse,
    EmbeddingResponse,
    GenerationResponse,
    GuardResponse,
    ModelSelectionResponse,
    MultiTaskResponse,
    RerankingResponse,
    Response,
    TaggingResponse,
)

__all__ = [
    "Aggregation",
    "EmbeddingRequest",
    "GenerationRequest",
    "GenerativeClassificationRequest",
    "GuardRequest",
    "InferenceRequest",
    "ModelSelectionRequest",
    "MultiTaskRequest",
    "MultimodalEmbeddingRequest",
    "PairClassificationRequest",
    "RerankingRequest",
    "ResponseFormat",
    "SequenceClassificationRequest",
    "SpansRequest",
    "TaskRef",
    "TokenClassificationRequest",
    "Truncation",
    "check_pairs",
    "check_texts",
]

R_co = TypeVar("R_co", bound=Response, covariant=True)

Truncation = Literal["error", "end", "start", "window"]
"""What happens to text over the limit: refused, cut at its end, cut at its start, or strided and merged."""

Aggregation = Literal["none", "simple", "first", "average", "max"]
"""How token labels become spans, with the meanings of the transformers token classification pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceRequest(Generic[R_co]):
    """Base of every request; ``R_co`` is the response a handle answers it with."""

    capability: ClassVar[Capability]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest(InferenceRequest[EmbeddingResponse]):
    """Embed ``texts``.

    :param dimensions: truncate to this many leading dimensions (Matryoshka), then normalise; None is native.
    :param layer: exit after this many layers; None is the full depth.
    :param prompt: the name of a prompt of the checkpoint to put before each text; None is its default prompt.
    """

    capability = Capability.EMBEDDING
    texts: tuple[str, ...]
    dimensions: int | None = None
    layer: int | None = None
    prompt: str | None = None
    truncate: Truncation = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultimodalEmbeddingRequest(InferenceRequest[EmbeddingResponse]):
    """Embed ``items``, texts, images and audio alike, into one space."""

    capability = Capability.MULTIMODAL_EMBEDDING
    items: tuple[TextPart | ImagePart | AudioPart, ...]
    dimensions: int | None = None
    layer: int | None = None
    truncate: Truncation = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceClassificationRequest(InferenceRequest[ClassificationResponse]):
    """Give each of ``texts`` one of the model's labels, with the distribution over all of them."""

    capability = Capability.SEQUENCE_CLASSIFICATION
    texts: tuple[str, ...]
    layer: int | None = None
    logits: bool = False
    truncate: Truncation = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairClassificationRequest(InferenceRequest[ClassificationResponse]):
    """Classify each (first, second) of ``pairs``: natural language inference, and every other pair head."""

    capability = Capability.PAIR_CLASSIFICATION
    pairs: tuple[tuple[str, str], ...]
    layer: int | None = None
    logits: bool = False
    truncate: Truncation = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeClassificationRequest(InferenceRequest[ClassificationResponse]):
    """Classify ``texts`` by what a generative model would say; ``labels`` None asks for the model's own."""

    capability = Capability.GENERATIVE_CLASSIFICATION
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    instruction: str | None = None
    truncate: Truncation = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRef:
    """One task of a multi-task request: its name, the model that answers it, and what is asked of that model."""

    task: str
    model: str
    capability: Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiTaskRequest(InferenceRequest[MultiTaskResponse]):
    """Ask several classifiers and taggers about the same ``texts``; those of one base in one pass."""

    capability = Capability.MULTI_TASK
    texts: tuple[str, ...]
    tasks: tuple[TaskRef, ...]
    aggregation: Aggregation = "simple"
    truncate: Truncation = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenClassificationRequest(InferenceRequest[TaggingResponse]):
    """Find the labelled spans of each of ``texts``."""

    capability = Capability.TOKEN_CLASSIFICATION
    texts: tuple[str, ...]
    aggregation: Aggregation = "simple"
    layer: int | None = None
    truncate: Truncation = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpansRequest(InferenceRequest[TaggingResponse]):
    """Find the spans of ``answer`` that ``context`` does not support (or what else the model marks).

    Offsets count code points of ``answer``.
    """

    capability = Capability.SPANS
    answer: str
    context: str
    question: str = ""
    truncate: Truncation = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankingRequest(InferenceRequest[RerankingResponse]):
    """Score each of ``documents`` against ``query``; ``top_n`` cuts the answer after scoring, never before."""

    capability = Capability.RERANKING
    query: str
    documents: tuple[str, ...]
    top_n: int | None = None
    truncate: Truncation = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRequest(InferenceRequest[GuardResponse]):
    """Judge the safety of a conversation: its last turn, in the light of the others."""

    capability = Capability.GUARD
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFormat:
    """Structured output: any JSON object, or one that fits ``json_schema``."""

    kind: Literal["json_object", "json_schema"]
    name: str | None = None
    json_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest(InferenceRequest[GenerationResponse]):
    """Continue a conversation.

    ``temperature`` None and ``top_p`` None leave the choice to the model; ``seed`` makes sampling repeatable where
    the backend can. ``tool_choice`` is ``auto``, ``none``, ``required`` or the name of a tool.
    """

    capability = Capability.GENERATION
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["none", "low", "medium", "high"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSelectionRequest(InferenceRequest[ModelSelectionResponse]):
    """Choose among ``candidates`` for a query, from its text, its embedding, or numbered features."""

    capability = Capability.MODEL_SELECTION
    text: str | None = None
    features: tuple[float, ...] | None = None
    candidates: tuple[str, ...] = ()


def check_texts(texts: object, param: str = "texts") -> tuple[str, ...]:
    """Return ``texts`` as a tuple if every item is text a tokenizer can take.

    A single string counts as one text. Empty and blank strings, NUL and control characters are text; a lone
    surrogate is not, since it has no UTF-8 form.

    :raises InvalidInputError: not a list of strings, an empty list, or a lone surrogate; ``param`` names the item.
    """
    if isinstance(texts, str):
        texts = (texts,)
    if not isinstance(texts, list | tuple):
        raise InvalidInputError(
            f"{param} must be a string or a list of strings, not {type(texts).__name__}", param=param
        )
    if not texts:
        raise InvalidInputError(f"{param} is empty: at least one text is needed", param=param)
    for index, text in enumerate(texts):
        where = f"{param}[{index}]"
        if not isinstance(text, str):
            raise InvalidInputError(f"{where} must be a string, not {type(text).__name__}", param=where)
        if not text.isascii():
            _check_encodable(text, where)
    return tuple(texts)


def check_pairs(pairs: object, param: str = "pairs") -> tuple[tuple[str, str], ...]:
    """Return ``pairs`` as a tuple of pairs of texts; one (first, second) tuple of strings counts as one pair.

    :raises InvalidInputError: not a list of pairs of strings, an empty list, or a lone surrogate; ``param`` names the
        item.
    """
    if isinstance(pairs, tuple) and len(pairs) == 2 and all(isinstance(text, str) for text in pairs):
        pairs = (pairs,)
    if not isinstance(pairs, list | tuple):
        raise InvalidInputError(f"{param} must be a list of pairs of strings, not {type(pairs).__name__}", param=param)
    if not pairs:
        raise InvalidInputError(f"{param} is empty: at least one pair is needed", param=param)
    return tuple(_check_pair(pair, f"{param}[{index}]") for index, pair in enumerate(pairs))


def _check_pair(pair: object, where: str) -> tuple[str, str]:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        found = f"{len(pair)} items" if isinstance(pair, list | tuple) else type(pair).__name__
        raise InvalidInputError(f"{where} must be a pair (first, second) of strings, not {found}", param=where)
    first, second = check_texts(list(pair), where)
    return first, second


def _check_encodable(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{where} holds a lone surrogate at character {error.start}: it is no valid Unicode text", param=where
        ) from None
