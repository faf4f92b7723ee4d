"""The plain loop that graphs are run in when nothing of vsr is around them.

Texts are tokenised, sorted by length and cut into batches of a number of padded tokens that a sweep finds best; hidden
states are averaged under the mask and scaled to unit length.
"""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .batches import BATCH_TOKENS, batches_of
from .corpus import MAX_TOKENS
from .protocol import SweepPoint
from .serving import Subject

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Feeds = Mapping[str, npt.NDArray[np.int64]]
    Store = Callable[["GraphBatch", npt.NDArray[np.float32]], None]

__all__ = ["GraphBatch", "GraphLoop"]

BUDGETS = (128, 256, 512, 1024, 2048)
"""Padded tokens of a batch that are tried."""
SWEEP_TEXTS = 120
SWEEP_PASSES = 2


@dataclass(frozen=True, slots=True, eq=False)
class GraphBatch:
    """Texts by their indices, and what the graph reads of them: each input int64 ``[texts, longest]``."""

    indices: list[int]
    feeds: Feeds


class GraphLoop(Subject):
    """What a loop over any graph has in common.

    :param folder: an export, whose manifest names inputs and outputs.
    """

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        manifest = json.loads((folder / "vsr_manifest.json").read_text(encoding="utf-8"))
        self.inputs: tuple[str, ...] = tuple(manifest["inputs"])
        self.output: str = manifest["exits"][-1]["output"]
        self.batch_tokens = BATCH_TOKENS
        self._width: int = manifest["hidden_size"]
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    @abstractmethod
    def run(self, batches: Sequence[GraphBatch], store: Store) -> None:
        """Run all batches, handing the hidden states of each, ``[texts, longest, hidden]``, to ``store``."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        encoded = self._tokenizer.encode_batch(list(texts))
        vectors: npt.NDArray[np.float32] = np.empty((len(texts), self._width), np.float32)

        def store(batch: GraphBatch, states: npt.NDArray[np.float32]) -> None:
            mask = batch.feeds["attention_mask"].astype(np.float32)
            sums = np.matmul(mask[:, None, :], states)[:, 0]
            vectors[batch.indices] = sums / mask.sum(axis=1, keepdims=True)

        lengths = [len(each.ids) for each in encoded]
        groups = batches_of(lengths, self.batch_tokens)
        self.run([GraphBatch(group, self._feeds([encoded[index] for index in group])) for group in groups], store)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def tune(self, texts: Sequence[str]) -> tuple[SweepPoint, ...]:
        """Time every size of batch over texts from the whole corpus, in turn, and keep the fastest."""
        sample = texts[:: max(1, len(texts) // SWEEP_TEXTS)][:SWEEP_TEXTS]
        best = dict.fromkeys(BUDGETS, float("inf"))
        for _ in range(SWEEP_PASSES):
            for budget in BUDGETS:
                self.batch_tokens = budget
                start = time.perf_counter()
                self.embed(sample)
                best[budget] = min(best[budget], time.perf_counter() - start)
        self.batch_tokens = min(best, key=best.__getitem__)
        return tuple(SweepPoint(batch_size=budget, seconds=seconds) for budget, seconds in best.items())

    def count_tokens(self, texts: Sequence[str]) -> int:
        return sum(len(each.ids) for each in self._tokenizer.encode_batch(list(texts)))

    def _feeds(self, encoded: Sequence[Any]) -> Feeds:
        import numpy as np

        shape = (len(encoded), max(len(each.ids) for each in encoded))
        feeds: dict[str, npt.NDArray[np.int64]] = {name: np.zeros(shape, np.int64) for name in self.inputs}
        for row, each in enumerate(encoded):
            feeds["input_ids"][row, : len(each.ids)] = each.ids
            feeds["attention_mask"][row, : len(each.ids)] = 1
        return feeds
