"""Worker: the checkpoint run by plain transformers, one text at a time, which is what cosines are measured against."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..corpus import MAX_TOKENS, model_folder
from ..machine import installed_versions
from ..protocol import SubjectFacts
from ..serving import Subject, serve

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PlainTransformers", "main"]


class PlainTransformers(Subject):
    """Mean over token vectors, scaled to unit length, in fp32; no padding, hence no mask to get wrong."""

    def __init__(self) -> None:
        self._torch: Any = importlib.import_module("torch")
        transformers: Any = importlib.import_module("transformers")
        tokenizers: Any = importlib.import_module("tokenizers")
        folder = model_folder()
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._model = transformers.AutoModel.from_pretrained(str(folder), dtype=self._torch.float32).eval()

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        return np.stack([self._embed_one(text) for text in texts])

    def count_tokens(self, texts: Sequence[str]) -> int:
        return sum(len(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts)))

    def facts(self) -> SubjectFacts:
        return SubjectFacts(
            dtype="float32",
            threads=self._torch.get_num_threads(),
            versions=installed_versions("transformers", "tokenizers", "torch"),
        )

    def _embed_one(self, text: str) -> npt.NDArray[np.float32]:
        ids = self._torch.tensor([self._tokenizer.encode(text).ids])
        with self._torch.inference_mode():
            pooled = self._model(input_ids=ids).last_hidden_state[0].mean(dim=0)
            vector: npt.NDArray[np.float32] = (pooled / pooled.norm()).numpy()
        return vector


def main() -> None:
    """Serve the reference."""
    serve(PlainTransformers)


if __name__ == "__main__":
    main()
