"""Encoders run by transformers' own code: DeBERTa, and every family we have no forward of our own for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from vsr_core.errors import CheckpointError
from vsr_core.local import BatchShape

from .heads import HeadKind
from .network import States
from .packed import Packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

__all__ = ["BorrowedNetwork"]

_UNUSED = ("pooler.",)
"""Parts that transformers builds around an encoder and an embedding never asks: they may be missing."""


class BorrowedNetwork:
    """A model of transformers, run on sequences of equal length together, so that nothing is padded or masked.

    The logits come from the last layer alone: where else a head may sit, only the model's own code knows.

    :param head: what kind of head to load, None for the encoder alone.
    :raises CheckpointError: a tensor is missing, unexpected or of another shape, or there is no such model.
    """

    def __init__(self, folder: Path, *, head: HeadKind | None, dtype: torch.dtype) -> None:
        self._model = _load(folder, head, dtype).eval()
        config = self._model.config
        self.hidden_size: int = config.hidden_size
        self.layers: int = config.num_hidden_layers
        self.dtype = dtype
        self.bytes = sum(tensor.numel() * tensor.element_size() for tensor in self._model.state_dict().values())
        self.head = head
        self.labels: int | None = config.num_labels if head is not None else None
        self._heads: int = config.num_attention_heads
        self._inner: int = getattr(config, "intermediate_size", None) or 4 * self.hidden_size
        self._types = (getattr(config, "type_vocab_size", 0) or 0) > 1

    def run(self, packed: Packed, *, hidden: frozenset[int], logits: frozenset[int]) -> States:
        """Run a batch, one forward for each run of sequences of equal length.

        :raises ValueError: another layer than the last is wanted of the head, or a head of a model without one.
        """
        if logits - {self.layers} or (logits and self.head is None):
            raise ValueError("this model gives logits after its last layer alone, and only where it has a head")
        if not hidden:
            found = [row for run in packed.runs for row in self._forward(packed, run.first, run.count).logits.unbind(0)]
            return States({}, dict.fromkeys(logits, found))
        states: dict[int, list[Tensor]] = {layer: [] for layer in hidden}
        rows: list[Tensor] = []
        for run in packed.runs:
            output = self._forward(packed, run.first, run.count, output_hidden_states=True)
            for layer in hidden:
                # The last of the hidden states may come before a final norm; what the encoder gives comes after it.
                last = layer == self.layers and self.head is None
                chosen = output.last_hidden_state if last else output.hidden_states[layer]
                states[layer].append(chosen.flatten(0, 1))
            rows += output.logits.unbind(0) if logits else []
        return States({layer: torch.cat(parts) for layer, parts in states.items()}, dict.fromkeys(logits, rows))

    def plan_bytes(self, shape: BatchShape) -> int:
        """What DeBERTa takes, measured, and some more: five scores for each head and pair of tokens, and two indices.

        The families that do not write their scores out take less.
        """
        scores = 4 * (6 * self._heads + 10) * shape.longest * shape.longest
        return shape.sequences * scores + shape.tokens * 4 * (12 * self.hidden_size + 2 * self._inner)

    def _forward(self, packed: Packed, first: int, count: int, **options: bool) -> Any:
        start, end = int(packed.offsets[first]), int(packed.offsets[first + count])
        ids = packed.ids[start:end].view(count, -1).long()
        inputs: dict[str, Tensor] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if self._types:
            inputs["token_type_ids"] = packed.type_ids[start:end].view(count, -1).long()
        with torch.inference_mode():
            return self._model(**inputs, **options)


def _load(folder: Path, head: HeadKind | None, dtype: torch.dtype) -> Any:
    import transformers

    classes = {
        "sequence": transformers.AutoModelForSequenceClassification,
        "token": transformers.AutoModelForTokenClassification,
    }
    kind = transformers.AutoModel if head is None else classes[head]
    try:
        with _quietly():
            model, report = kind.from_pretrained(
                str(folder),
                dtype=dtype,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
            )
    except Exception as error:
        raise CheckpointError(f"{folder}: transformers cannot load it: {_one_line(error)}") from error
    _check(folder, head, report)
    return model


def _check(folder: Path, head: HeadKind | None, report: Mapping[str, Any]) -> None:
    """Refuse what transformers merely logs: tensors that are missing would be random."""
    missing = [
        name
        for name in sorted(report["missing_keys"])
        if head is not None or not any(part in f"{name}." for part in _UNUSED)
    ]
    problems = [
        ("lack", missing),
        ("hold other shapes for", sorted(str(entry[0]) for entry in report["mismatched_keys"])),
        ("hold tensors nobody uses:", sorted(report["unexpected_keys"]) if head is not None else []),
    ]
    said = [f"the weights {what} {', '.join(map(repr, names[:3]))}" for what, names in problems if names]
    if said:
        raise CheckpointError(f"{folder}: {'; '.join(said)}")


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep transformers from drawing progress bars and logging what is checked here anyway."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(40)  # that of logging.ERROR
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
