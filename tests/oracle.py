"""What HF transformers answers for a checkpoint, for tests that hold our answers against it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer

__all__ = ["LONG", "TEXTS", "Reference", "config_of"]

LONG = "the red cat and the blue dog in the green tree by the river bank, one two three of it is for the answer " * 3
TEXTS = [
    "the cat is on the river bank",
    "A Dog",
    "",
    "query answer two three green tree; 12:30 and running over the hills to find a bank",
    "x",
    "   ",
    "naïve ﬁne — 日本 😀 x",
    LONG,
    "the red cat and the blue dog in the green tree by the river bank",
    "one\ntwo\tthree  four [SEP] </s> <eos>",
    "A Dog",
]
"""From no token to more than the models read; several are longer than the windows of ModernBERT's layers."""

_CLASSES = {
    "embedding": transformers.AutoModel,
    "sequence": transformers.AutoModelForSequenceClassification,
    "token": transformers.AutoModelForTokenClassification,
}


def config_of(folder: Path | dict[str, Path], **entry: object) -> dict[str, object]:
    """A configuration that serves a folder, or several by name, in float32."""
    folders = folder if isinstance(folder, dict) else {"model": folder}
    catalog = {name: {"source": str(place), **entry} for name, place in folders.items()}
    return {"catalog": catalog, "backends": {"torch": {"precision": "fp32", "threads": 1}}}


class Reference:
    """A checkpoint in transformers, in float32, given one unpadded sequence at a time."""

    def __init__(self, folder: Path, head: Literal["embedding", "sequence", "token"] = "embedding") -> None:
        self.limit = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["model_max_length"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(self.limit, strategy="longest_first")
        self.model = _CLASSES[head].from_pretrained(folder, dtype=torch.float32).eval()
        self.pad = self.model.config.pad_token_id
        self._typed = getattr(self.model.config, "type_vocab_size", 0) > 1

    def exit_at(self, layer: int) -> Reference:
        """The same checkpoint as a model that has only its first layers."""
        shallow = copy.copy(self)
        shallow.model = copy.deepcopy(self.model)
        base = shallow.model.base_model
        owner, name = (base, "layers") if hasattr(base, "layers") else (base.encoder, "layer")
        setattr(owner, name, getattr(owner, name)[:layer])
        return shallow

    def answer(self, text: str, second: str | None = None) -> np.ndarray:
        """What the model gives for a text or a pair: token vectors ``[tokens, hidden]``, or logits."""
        encoding = self.tokenizer.encode(text, second)
        types = {"token_type_ids": torch.tensor([encoding.type_ids])} if self._typed else {}
        with torch.inference_mode():
            return self.model(torch.tensor([encoding.ids]), **types)[0][0].numpy()

    def answers(self, texts: list[str] | list[tuple[str, str]]) -> list[np.ndarray]:
        """The answers to texts or pairs, each by itself."""
        return [self.answer(text) if isinstance(text, str) else self.answer(*text) for text in texts]

    def padded(self, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Token vectors ``[texts, longest, hidden]`` of one padded batch, and its mask, as sentence-transformers has them."""
        rows = [self.tokenizer.encode(text).ids for text in texts]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [self.pad] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        with torch.inference_mode():
            return self.model(ids, attention_mask=mask)[0], mask
