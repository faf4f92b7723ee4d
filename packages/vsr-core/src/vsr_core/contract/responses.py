"""What is answered: results in an honest envelope.

Whatever a backend does not tell is None, never a guess. Scores and probabilities are finite; a non-finite
output is an error before a response exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from .address import BackendId
from .arrays import FloatArray
from .messages import ToolCall

__all__ = [
    "ClassificationResponse",
    "ClassificationResult",
    "EmbeddingResponse",
    "Envelope",
    "GenerationEnd",
    "GenerationEvent",
    "GenerationResponse",
    "GenerationStart",
    "GuardResponse",
    "InputReport",
    "ModelSelectionResponse",
    "MultiTaskResponse",
    "ReasoningDelta",
    "RerankResult",
    "RerankingResponse",
    "Response",
    "SimilarityResponse",
    "Span",
    "TaggingResponse",
    "TaggingResult",
    "TaskOutcome",
    "TextDelta",
    "ToolCallDelta",
    "Usage",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReport:
    """What became of one input: how many tokens were read, of how many, and whether any were cut.

    ``cut`` names the texts of a pair that lost tokens. ``windows`` is how many overlapping windows a long text was
    read in, None where it was read at once.
    """

    tokens: int | None = None
    total_tokens: int | None = None
    truncated: bool | None = None
    cut: tuple[Literal["first", "second"], ...] = ()
    windows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of a whole request, normalised: ``input_tokens`` includes cached and written ones,
    ``output_tokens`` includes reasoning."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Who answered, on what, and what was really done.

    ``dimensions`` and ``layer`` are what was effective, beside what was requested (None: not asked for).
    """

    backend_id: BackendId
    request_id: str | None = None
    revision: str | None = None
    adapter_revision: str | None = None
    device: str | None = None
    provider: str | None = None
    dtype: str | None = None
    requested_dimensions: int | None = None
    dimensions: int | None = None
    requested_layer: int | None = None
    layer: int | None = None
    inputs: tuple[InputReport, ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Base of every response."""

    envelope: Envelope


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmbeddingResponse(Response):
    """``vectors`` is float32 of shape ``[n, d]``, one row per input, in order; ``space`` names the embedding space
    (checkpoint content, pooling and dtype): vectors of different spaces must not be compared."""

    tag: ClassVar[str] = "embedding"
    vectors: FloatArray
    normalized: bool | None = None
    space: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimilarityResponse(Response):
    """``scores`` is float32 of shape ``[n]``: the similarity of the query to each candidate, by ``function``."""

    tag: ClassVar[str] = "similarity"
    scores: FloatArray
    function: Literal["cosine", "dot", "euclidean", "manhattan"] = "cosine"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationResult:
    """One input's label.

    ``distribution`` maps every label to its probability, in label order; where a backend gives none it is None and
    ``distribution_reason`` says why. ``passed`` says whether ``score`` cleared the entry's threshold for a label
    that counts, and is None where no threshold is set.
    """

    label: str
    score: float
    distribution: Mapping[str, float] | None = None
    distribution_reason: str | None = None
    logits: tuple[float, ...] | None = None
    passed: bool | None = None
    truncated: bool | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationResponse(Response):
    """One result per input, in order."""

    tag: ClassVar[str] = "classification"
    results: tuple[ClassificationResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A labelled stretch of the original text: ``text[start:end]``, both in code points."""

    start: int
    end: int
    label: str
    score: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggingResult:
    """The spans of one input, by start."""

    spans: tuple[Span, ...]
    truncated: bool | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggingResponse(Response):
    """One result per input, in order."""

    tag: ClassVar[str] = "tagging"
    results: tuple[TaggingResult, ...]
    offset_unit: Literal["codepoint"] = "codepoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankResult:
    """A document by its ``index`` in the request, and its ``score``."""

    index: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankingResponse(Response):
    """Documents by falling score; equal scores keep the order of the request. ``score_kind`` says what a score is."""

    tag: ClassVar[str] = "reranking"
    results: tuple[RerankResult, ...]
    score_kind: Literal["logit", "probability", "cosine", "dot", "euclidean", "manhattan", "unknown"] = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResponse(Response):
    """A safety verdict; ``raw`` is the model's own text where it writes one."""

    tag: ClassVar[str] = "guard"
    verdict: Literal["safe", "unsafe", "controversial"]
    categories: tuple[str, ...] = ()
    scores: Mapping[str, float] | None = None
    raw: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSelectionResponse(Response):
    """The candidate chosen, and the score of each where the selector gives them."""

    tag: ClassVar[str] = "model_selection"
    selected: str
    scores: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """One task of a multi-task request: its response, or the error that task alone failed with."""

    task: str
    response: ClassificationResponse | TaggingResponse | None = None
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiTaskResponse(Response):
    """One outcome per task, in the order asked; ``shared_layers`` is how many layers ran once for all tasks."""

    tag: ClassVar[str] = "multi_task"
    outcomes: tuple[TaskOutcome, ...]
    shared_layers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationResponse(Response):
    """A whole answer. ``finish_reason`` None means the backend did not say."""

    tag: ClassVar[str] = "generation"
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStart:
    """The backend began to answer; no content yet."""

    tag: ClassVar[str] = "start"
    model: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text."""

    tag: ClassVar[str] = "text_delta"
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More reasoning."""

    tag: ClassVar[str] = "reasoning_delta"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """More of the tool call number ``index``; ``id`` and ``name`` come with its first event."""

    tag: ClassVar[str] = "tool_call_delta"
    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationEnd:
    """The end marker, with the whole answer; a stream without it has failed."""

    tag: ClassVar[str] = "end"
    response: GenerationResponse


GenerationEvent = GenerationStart | TextDelta | ReasoningDelta | ToolCallDelta | GenerationEnd
