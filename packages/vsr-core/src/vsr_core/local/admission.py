"""What a batcher can never take, however empty its queue: refused before it is queued."""

from __future__ import annotations

from collections.abc import Sequence

from ..contract import BatchingHints
from ..errors import InferenceError, InputTooLongError, InvalidInputError
from .engine import BatchShape, EncoderEngine
from .tickets import describe

__all__ = ["check_memory", "check_size"]


def check_size(lengths: Sequence[int], hints: BatchingHints, *, name: str) -> None:
    """Refuse a request that would not fit an empty queue.

    :param lengths: tokens of each item.
    :raises InputTooLongError: too many items or tokens; ``unit`` says which.
    :raises InvalidInputError: an item without tokens.
    """
    if not min(lengths):
        raise InvalidInputError("a sequence without tokens cannot be run", param="texts")
    bounds = ((len(lengths), hints.max_queue_items, "texts"), (sum(lengths), hints.max_queue_tokens, "tokens"))
    for actual, limit, unit in bounds:
        if actual > limit:
            raise InputTooLongError(
                f"the request has {actual} {unit}, the queue of {name} holds {limit}: split the request",
                limit=limit,
                actual=actual,
                unit=unit,
                param="texts",
            )


def check_memory(longest: int, limit: int | None, *, engine: EncoderEngine, name: str) -> None:
    """Refuse a sequence that the engine could not run even by itself.

    :raises InferenceError: the engine's plan failed.
    :raises InputTooLongError: it needs more than ``limit`` bytes by the engine's plan.
    """
    if limit is None:
        return
    try:
        needed = engine.plan_bytes(BatchShape(1, longest, longest))
    except Exception as error:
        raise InferenceError(f"{name} failed while planning a batch: {describe(error)}", backend_id=name) from error
    if needed > limit:
        raise InputTooLongError(
            f"a text of {longest} tokens needs {needed} bytes of working memory on {name}, where {limit} may be used",
            limit=limit,
            actual=needed,
            unit="bytes",
            param="texts",
        )
