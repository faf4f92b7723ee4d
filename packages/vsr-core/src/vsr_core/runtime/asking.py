"""What a facade call comes to: a plan of who may answer, and the operation to ask them for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from ..contract import (
    Aggregation,
    CallContext,
    ClassificationResponse,
    EmbeddingRequest,
    EmbeddingResponse,
    MultiTaskRequest,
    PairClassificationRequest,
    RerankingRequest,
    RerankingResponse,
    SequenceClassificationRequest,
    SimilarityResponse,
    TaggingResponse,
    TaskRef,
    TokenClassificationRequest,
    Truncation,
    check_pairs,
    check_texts,
)
from ..errors import CheckpointError, InvalidInputError, ModelNotFoundError, PluginError, VsrError
from ..routing import Plan, Planner, Requirements
from ..taxonomy import Capability, Kind
from .arguments import Hints, call_context, check_choice, check_count, check_text, check_truth, implied_features
from .operations import Classify, Embed, Rerank, Similarity, Tag
from .planned import Ask
from .together import AskAll, TaskAsk

__all__ = ["Asking"]

_CUTS: tuple[Truncation, ...] = ("error", "end", "start")
"""What may become of a text that gets one vector; windows would give several."""


class Asking:
    """Turns the arguments of facade calls into asks; everything it raises, it raises from the plain call."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def embed(
        self,
        texts: str | Sequence[str],
        *,
        model: str,
        dimensions: int | None,
        layer: int | None,
        prompt: str | None,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[EmbeddingResponse]:
        """Plan an embedding."""
        request = EmbeddingRequest(
            texts=check_texts(texts),
            dimensions=check_count(dimensions, "dimensions"),
            layer=check_count(layer, "layer"),
            prompt=prompt if prompt is None else check_text(prompt, "prompt"),
            truncate=check_choice(truncate, "truncate", _CUTS),
        )
        needs = Requirements.of(
            Kind.EMBEDDING,
            Capability.EMBEDDING,
            derived=implied_features(dimensions=dimensions, layer=layer),
            requires=requires,
        )
        return Ask(self._planner.plan(needs, model), Embed(request), call_context(timeout, hints))

    def similarity(
        self,
        text: str,
        candidates: str | Sequence[str],
        *,
        model: str,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[SimilarityResponse]:
        """Plan the similarity of one text to others."""
        operation = Similarity(check_text(text, "text"), check_texts(candidates, "candidates"))
        needs = Requirements.of(Kind.EMBEDDING, Capability.SIMILARITY, requires=requires)
        return Ask(self._planner.plan(needs, model), operation, call_context(timeout, hints))

    def rerank(
        self,
        query: str,
        documents: str | Sequence[str],
        *,
        top_n: int | None,
        model: str,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[RerankingResponse]:
        """Plan a reranking."""
        request = RerankingRequest(
            query=check_text(query, "query"),
            documents=check_texts(documents, "documents"),
            top_n=check_count(top_n, "top_n"),
            truncate=_truncation(truncate),
        )
        needs = Requirements.of(Kind.RERANKING, Capability.RERANKING, requires=requires)
        return Ask(self._planner.plan(needs, model), Rerank(request), call_context(timeout, hints))

    def classify(
        self,
        texts: str | Sequence[str],
        *,
        model: str,
        layer: int | None,
        logits: bool,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[ClassificationResponse]:
        """Plan the classification of texts."""
        request = SequenceClassificationRequest(
            texts=check_texts(texts),
            layer=check_count(layer, "layer"),
            logits=check_truth(logits, "logits"),
            truncate=_truncation(truncate),
        )
        needs = _needs(request.capability, layer, requires)
        return Ask(self._planner.plan(needs, model), Classify(request), call_context(timeout, hints))

    def nli(
        self,
        pairs: tuple[str, str] | Sequence[tuple[str, str]],
        *,
        model: str,
        layer: int | None,
        logits: bool,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[ClassificationResponse]:
        """Plan the classification of pairs."""
        request = PairClassificationRequest(
            pairs=check_pairs(pairs),
            layer=check_count(layer, "layer"),
            logits=check_truth(logits, "logits"),
            truncate=_truncation(truncate),
        )
        needs = _needs(request.capability, layer, requires)
        return Ask(self._planner.plan(needs, model), Classify(request), call_context(timeout, hints))

    def tag(
        self,
        texts: str | Sequence[str],
        *,
        model: str,
        aggregation: Aggregation,
        layer: int | None,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> Ask[TaggingResponse]:
        """Plan the tagging of texts."""
        request = TokenClassificationRequest(
            texts=check_texts(texts),
            aggregation=check_choice(aggregation, "aggregation", get_args(Aggregation)),
            layer=check_count(layer, "layer"),
            truncate=_truncation(truncate),
        )
        needs = _needs(request.capability, layer, requires)
        return Ask(self._planner.plan(needs, model), Tag(request), call_context(timeout, hints))

    def classify_all(
        self,
        texts: str | Sequence[str],
        *,
        tasks: Sequence[str],
        aggregation: Aggregation,
        truncate: Truncation,
        timeout: float | None,
        hints: Hints | None,
        requires: Sequence[str],
    ) -> AskAll:
        """Plan several tasks about the same texts, each in the kind its name belongs to."""
        checked, call = check_texts(texts), call_context(timeout, hints)
        plans = {name: self._plan_task(name, requires) for name in _task_names(tasks)}
        request = MultiTaskRequest(
            texts=checked,
            tasks=tuple(
                TaskRef(task=name, model=str(plan.first.backend_id), capability=plan.capability)
                for name, plan in plans.items()
                if isinstance(plan, Plan)
            ),
            aggregation=check_choice(aggregation, "aggregation", get_args(Aggregation)),
            truncate=_truncation(truncate),
        )
        asks = {
            name: _task_ask(request, plan, call) if isinstance(plan, Plan) else plan for name, plan in plans.items()
        }
        return AskAll(request, asks, call)

    def _plan_task(self, name: str, requires: Sequence[str]) -> Plan | VsrError:
        """The plan of one task, by its role where it is one, else by what its model is for.

        What is wrong with the files or the backend of its model is given back: it is that task's failure alone.

        :raises VsrError: the name is nobody's, or who it stands for cannot do what is needed.
        """
        kinds = self._planner.kinds_of(name)
        found: list[Plan] = []
        errors: list[VsrError] = []
        for capability in _TASKS:
            if kinds.isdisjoint(_KINDS) or capability.kind in kinds:
                try:
                    found.append(self._planner.plan(_needs(capability, None, requires), name))
                except VsrError as error:
                    errors.append(error)
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidInputError(
                f"tasks has {name!r}, which may be classification or token classification: name the model of one of the"
                " two, or state its 'capabilities' in the catalog",
                param="tasks",
            )
        told = next((error for error in errors if not isinstance(error, ModelNotFoundError)), errors[0])
        if isinstance(told, CheckpointError | PluginError):
            return told
        raise told


_TASKS = (Capability.SEQUENCE_CLASSIFICATION, Capability.TOKEN_CLASSIFICATION)
_KINDS = frozenset({Kind.CLASSIFICATION, Kind.TOKEN_CLASSIFICATION})


def _task_names(tasks: object) -> tuple[str, ...]:
    if isinstance(tasks, str):
        tasks = (tasks,)
    if not isinstance(tasks, list | tuple) or not tasks or not all(isinstance(name, str) for name in tasks):
        raise InvalidInputError(
            f"tasks must be a list of at least one role, model or backend id, not {tasks!r}", param="tasks"
        )
    twice = next((name for name in tasks if tasks.count(name) > 1), None)
    if twice is not None:
        raise InvalidInputError(f"tasks has {twice!r} more than once", param="tasks")
    return tuple(tasks)


def _task_ask(request: MultiTaskRequest, plan: Plan, call: CallContext) -> TaskAsk:
    """What one task comes to by itself."""
    texts, truncate = request.texts, request.truncate
    if plan.capability is Capability.TOKEN_CLASSIFICATION:
        tag = TokenClassificationRequest(texts=texts, aggregation=request.aggregation, truncate=truncate)
        return Ask(plan, Tag(tag), call)
    return Ask(plan, Classify(SequenceClassificationRequest(texts=texts, truncate=truncate)), call)


def _needs(capability: Capability, layer: int | None, requires: Sequence[str]) -> Requirements:
    return Requirements.of(capability.kind, capability, derived=implied_features(layer=layer), requires=requires)


def _truncation(truncate: Truncation) -> Truncation:
    return check_choice(truncate, "truncate", get_args(Truncation))
