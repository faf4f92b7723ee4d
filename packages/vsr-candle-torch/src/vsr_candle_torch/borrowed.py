"""Encoders run by transformers' own code: DeBERTa, and every family we have no forward of our own for."""

from __future__ import annotations

import threading
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
    from transformers import PretrainedConfig

__all__ = ["BorrowedNetwork", "borrowed_config"]

_ONE_AT_A_TIME = threading.Lock()

_UNUSED = ("pooler.",)
"""Parts that transformers builds around an encoder and an embedding never asks: they may be missing."""

_HEADS = ("classifier.weight", "classifier.out_proj.weight")
"""What the last layer of a head may be called."""


class BorrowedNetwork:
    """A model of transformers, run on sequences of equal length together, so that nothing is padded or masked.

    The logits come from the last layer alone: where else a head may sit, only the model's own code knows.

    :param config: as :func:`borrowed_config` gives it; :param tensors: the weights, by name.
    :param head: what kind of head to load, None for the encoder alone.
    :raises CheckpointError: a tensor is missing, unexpected or of another shape, or there is no such model.
    """

    def __init__(
        self, config: PretrainedConfig, tensors: Mapping[str, Tensor], *, head: HeadKind | None, dtype: torch.dtype
    ) -> None:
        self._model = _load(config, tensors, head).to(dtype).eval()
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


def borrowed_config(folder: Path, tensors: Mapping[str, Tensor]) -> PretrainedConfig:
    """The configuration transformers reads from the folder, with as many labels as the head in the weights has outputs.

    :raises CheckpointError: transformers refuses it.
    """
    from transformers import AutoConfig

    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        raise CheckpointError(f"{folder}: transformers cannot read its config.json: {_one_line(error)}") from error
    rows = next((tensors[name].shape[0] for name in _HEADS if name in tensors), None)
    if rows is not None and rows != config.num_labels:
        config.num_labels = rows
    return config


def _load(config: PretrainedConfig, tensors: Mapping[str, Tensor], head: HeadKind | None) -> Any:
    """Build the model in float32, one at a time: transformers sets torch's default dtype for everybody meanwhile."""
    import transformers

    classes: dict[HeadKind | None, Any] = {
        None: transformers.AutoModel,
        "sequence": transformers.AutoModelForSequenceClassification,
        "token": transformers.AutoModelForTokenClassification,
    }
    where = str(config.name_or_path)
    by_config = classes[head]._model_mapping  # noqa: SLF001 - the class itself takes weights that were read, not a folder
    try:
        with _ONE_AT_A_TIME, _quietly():
            model, report = by_config[type(config)].from_pretrained(
                None,
                config=config,
                state_dict=dict(tensors),
                dtype=torch.float32,
                ignore_mismatched_sizes=True,  # so that they are reported here by name
                output_loading_info=True,
            )
    except Exception as error:
        raise CheckpointError(f"{where}: transformers cannot load it: {_one_line(error)}") from error
    _check(where, head, report)
    return model


def _check(where: str, head: HeadKind | None, report: Mapping[str, Any]) -> None:
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
        raise CheckpointError(f"{where}: {'; '.join(said)}")


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
