"""The ways to the answer for one text that the overhead benchmark compares, over one loaded model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from vsr_core.contract import BackendId, CallContext
from vsr_core.local import EncodedText, EncoderBase, EncoderHandle, RowWant, WorkItem, l2_normalize
from vsr_core.runtime import Runtime

from .configuration import BACKEND_ID
from .corpus import MAX_TOKENS
from .engines import MEAN, ragged

__all__ = ["paths_to"]


def paths_to(runtime: Runtime, texts: Sequence[str], *, threads: int) -> Mapping[str, Callable[[int], object]]:
    """By name, what answers for the text of an index, from the least around the engine to the most."""
    base = _base_inside(runtime)
    encoded = base.tokenizer.encode(texts, max_tokens=MAX_TOKENS)
    ready = [ragged([text], threads=threads) for text in encoded]

    def by_hand(index: int) -> object:
        batch = ragged(base.tokenizer.encode([texts[index]], max_tokens=MAX_TOKENS), threads=threads)
        return l2_normalize(np.stack(base.engine.run(batch).rows))

    def batcher(index: int) -> object:
        items = [_item(text) for text in base.tokenizer.encode([texts[index]], max_tokens=MAX_TOKENS)]
        return base.batcher.submit(items).result()

    return {
        "engine": lambda index: base.engine.run(ready[index]),
        "by hand": by_hand,
        "batcher": batcher,
        "embed": lambda index: runtime.embed([texts[index]]),
    }


def _base_inside(runtime: Runtime) -> EncoderBase:
    """The very model that the runtime answers with: a second copy would compete with it for the caches."""
    pool = runtime._core.pool  # noqa: SLF001 - the benchmark looks inside what it measures; applications cannot
    with pool.lease(BackendId.parse(BACKEND_ID), CallContext(request_id="benchmark")) as lease:
        handle = lease.handle
    if not isinstance(handle, EncoderHandle):
        raise TypeError(f"{BACKEND_ID} is a {type(handle).__name__}, no encoder of the shared pipeline")
    return handle.base


def _item(text: EncodedText) -> WorkItem:
    return WorkItem(text.ids, text.type_ids, text.prompt_tokens, (RowWant(MEAN),))
