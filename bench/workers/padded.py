"""Worker: transformers' own forward over token ids, with the attention it takes by itself."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..encoders.serving import Forward, serve_forward
from ..machine import installed_versions
from ..protocol import SubjectFacts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PaddedTransformers", "main"]


class PaddedTransformers(Forward):
    """``AutoModel`` with the mean over each text's tokens; several texts are padded, with a mask, and one is not.

    :param dtype: ``float32`` or ``bfloat16``.
    """

    def __init__(self, folder: Path, *, dtype: str, threads: int) -> None:
        self._torch: Any = importlib.import_module("torch")
        transformers: Any = importlib.import_module("transformers")
        self._torch.set_num_threads(threads)
        self._model: Any = transformers.AutoModel.from_pretrained(str(folder), dtype=getattr(self._torch, dtype)).eval()
        for weight in self._model.parameters():
            weight.sum()  # weights may be mapped from their file: reading them now keeps them out of a pass's memory

    def pooled(self, sequences: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        torch = self._torch
        ids, mask = self._padded(sequences)
        with torch.inference_mode():
            states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            if mask is None:
                pooled = states.mean(1)
            else:
                kept = mask[:, :, None].bool()
                pooled = torch.where(kept, states, 0.0).sum(1) / kept.sum(1)
        vectors: npt.NDArray[np.float32] = pooled.numpy()
        return vectors

    def facts(self) -> SubjectFacts:
        config = self._model.config
        return SubjectFacts(
            dtype=str(next(self._model.parameters()).dtype).removeprefix("torch."),
            threads=self._torch.get_num_threads(),
            versions=installed_versions("transformers", "torch"),
            details={
                "layers": f"{config.num_hidden_layers} of {config.num_hidden_layers}",
                "attention": str(config._attn_implementation),  # noqa: SLF001 - the only place that says what was taken
            },
        )

    def _padded(self, sequences: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """Ids ``[texts, longest]``, and the mask of what is not padding; None where nothing is."""
        torch = self._torch
        rows = [torch.tensor(ids) for ids in sequences]
        if len(rows) == 1:
            return rows[0][None], None
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self._model.config.pad_token_id)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        return ids, mask


def main() -> None:
    """Serve the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True)
    threads = len(os.sched_getaffinity(0))
    serve_forward(partial(PaddedTransformers, dtype=parser.parse_args().dtype, threads=threads))


if __name__ == "__main__":
    main()
