"""Worker: sentence-transformers on torch, in the environment of the peers."""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..corpus import MAX_TOKENS, model_folder
from ..machine import installed_versions
from ..protocol import SubjectFacts, SweepPoint
from ..serving import Subject, serve

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["SentenceTransformers", "main"]

BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
SWEEP_TEXTS = 120
SWEEP_PASSES = 2


class SentenceTransformers(Subject):
    """``SentenceTransformer.encode`` with everything else left at its default.

    :param batch_size: texts of one batch; None is found by a sweep when the subject is tuned.
    """

    def __init__(self, dtype: str, batch_size: int | None) -> None:
        torch = importlib.import_module("torch")
        library = importlib.import_module("sentence_transformers")
        self._torch: Any = torch
        self._model: Any = library.SentenceTransformer(
            str(model_folder()), device="cpu", model_kwargs={"dtype": getattr(torch, dtype)}
        )
        self._batch_size = batch_size
        if self._model.max_seq_length != MAX_TOKENS:
            raise RuntimeError(f"the model reads {self._model.max_seq_length} tokens instead of {MAX_TOKENS}")

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return self._encode(texts, self._batch_size or 32)

    def tune(self, texts: Sequence[str]) -> tuple[SweepPoint, ...]:
        """Time every batch size over texts from the whole corpus, in turn, and keep the fastest."""
        if self._batch_size is not None:
            return ()
        sample = texts[:: max(1, len(texts) // SWEEP_TEXTS)][:SWEEP_TEXTS]
        best = dict.fromkeys(BATCH_SIZES, float("inf"))
        for _ in range(SWEEP_PASSES):
            for size in BATCH_SIZES:
                start = time.perf_counter()
                self._encode(sample, size)
                best[size] = min(best[size], time.perf_counter() - start)
        self._batch_size = min(best, key=best.__getitem__)
        return tuple(SweepPoint(batch_size=size, seconds=seconds) for size, seconds in best.items())

    def count_tokens(self, texts: Sequence[str]) -> int:
        encoded = self._model.tokenizer(list(texts), truncation=True, max_length=self._model.max_seq_length)
        return sum(len(ids) for ids in encoded["input_ids"])

    def facts(self) -> SubjectFacts:
        return SubjectFacts(
            dtype=str(next(self._model.parameters()).dtype).removeprefix("torch."),
            threads=self._torch.get_num_threads(),
            versions=installed_versions("sentence-transformers", "transformers", "tokenizers", "torch"),
            details={"batch size": str(self._batch_size)},
        )

    def _encode(self, texts: Sequence[str], batch_size: int) -> npt.NDArray[np.float32]:
        vectors: npt.NDArray[np.float32] = self._model.encode(
            list(texts), batch_size=batch_size, show_progress_bar=False
        )
        return vectors


def main() -> None:
    """Serve one sentence-transformers subject."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True)
    parser.add_argument("--batch", required=True, help="a batch size, or 'best'")
    arguments = parser.parse_args()
    batch_size = None if arguments.batch == "best" else int(arguments.batch)
    serve(partial(SentenceTransformers, arguments.dtype, batch_size))


if __name__ == "__main__":
    main()
