"""What a batcher can never take, however empty its queue: refused before it is queued."""

from __future__ import annotations

from collections.abc import Sequence

from ..contract import BatchingHints
from ..errors import InferenceError, InputTooLongError, InvalidInputError
from .engine import BatchShape, EncoderEngine
from .memory import WorkingMemory
from .tickets import describe

__all__ = ["check_memory", "check_size"]


def check_size(lengths: Sequence[int], hints: BatchingHints, *, name: str) -> None:
    """Refuse a request that would not fit an empty queue.

    :param lengths: tokens of each item.
    :raises InputTooLongError: too many items or tokens; ``unit`` says which.
    :raises InvalidInputError: an item without tokens.
    """
    if not min(lengths):
        raise InvalidInputError("a sequence without tokens cannot be run")
    bounds = ((len(lengths), hints.max_queue_items, "sequences"), (sum(lengths), hints.max_queue_tokens, "tokens"))
    for actual, limit, unit in bounds:
        if actual > limit:
            raise InputTooLongError(
                f"the request has {actual} {unit}, the queue of {name} holds {limit}: split the request",
                limit=limit,
                actual=actual,
                unit=unit,
            )


def check_memory(lengths: Sequence[int], memory: WorkingMemory | None, *, engine: EncoderEngine, name: str) -> None:
    """Refuse a request with a sequence that the engine could not run even by itself.

    :param lengths: tokens of each item.
    :raises InferenceError: the engine's plan failed.
    :raises InputTooLongError: it needs more memory than there is by the engine's plan; ``limit`` is how many tokens
        would fit.
    """
    if memory is None:
        return
    longest = max(lengths)
    try:
        needed = _needed(engine, longest)
        if memory.allows(needed, batches=engine.concurrency):
            return
        bound = memory.bound(batches=engine.concurrency)
        fitting = _fitting(engine, bound, longest)
    except Exception as error:
        raise InferenceError(f"{name} failed while planning a batch: {describe(error)}", backend_id=name) from error
    raise InputTooLongError(
        f"for a sequence of {longest} tokens {name} would need {_mebibytes(needed)} of working memory where"
        f" {_mebibytes(bound)} may be used: {fitting} tokens would fit",
        limit=fitting,
        actual=longest,
        unit="tokens",
    )


def _needed(engine: EncoderEngine, tokens: int) -> int:
    return engine.plan_bytes(BatchShape(1, tokens, tokens))


def _fitting(engine: EncoderEngine, bound: int, too_many: int) -> int:
    """The most tokens of one sequence whose plan is within the bound."""
    low, high = 0, too_many
    while high - low > 1:
        middle = (low + high) // 2
        if _needed(engine, middle) <= bound:
            low = middle
        else:
            high = middle
    return low


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):,.0f} MiB"
