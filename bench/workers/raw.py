"""Worker: the engine in a plain loop, which is what the runtime around it is measured against.

Texts are tokenised, sorted by length and cut into batches of at most 1,024 padded tokens; the engine runs one batch
after the other on all compute threads, and the pooled rows are scaled to unit length.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from ..batches import BATCH_TOKENS, batches_of
from ..corpus import MAX_TOKENS
from ..machine import installed_versions
from ..protocol import SubjectFacts
from ..serving import Subject, serve

__all__ = ["RawLoop", "main"]


class RawLoop(Subject):
    """The forward of vsr-candle-torch without queue, threads or envelope around it."""

    def __init__(self, dtype: str) -> None:
        from ..engines import load_handle

        self._threads = len(os.sched_getaffinity(0))
        self._handle = load_handle(dtype, threads=self._threads)

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        from ..engines import ragged

        base = self._handle.base
        encoded = base.tokenizer.encode(texts, max_tokens=MAX_TOKENS)
        vectors: npt.NDArray[np.float32] = np.empty((len(texts), base.spec.hidden_size or 0), np.float32)
        for batch in batches_of([len(text.ids) for text in encoded], BATCH_TOKENS):
            output = base.engine.run(ragged([encoded[index] for index in batch], threads=self._threads))
            vectors[batch] = np.stack(output.rows)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> int:
        return sum(len(text.ids) for text in self._handle.base.tokenizer.encode(texts, max_tokens=MAX_TOKENS))

    def facts(self) -> SubjectFacts:
        return SubjectFacts(
            dtype=self._handle.base.identity.dtype.actual or "unknown",
            threads=self._threads,
            versions=installed_versions("vsr-candle-torch", "vsr-core", "tokenizers", "torch"),
            details={"batch size": f"{BATCH_TOKENS} tokens", "streams": "1"},
        )

    def close(self) -> None:
        asyncio.run(self._handle.close())


def main() -> None:
    """Serve the raw loop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True)
    serve(partial(RawLoop, parser.parse_args().dtype))


if __name__ == "__main__":
    main()
