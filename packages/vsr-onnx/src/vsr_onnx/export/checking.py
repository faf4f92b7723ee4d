"""Holding a graph against its source: texts of every length, alone and padded, hidden states and logits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from vsr_core.catalog import ExportTolerance
from vsr_core.contract import ExportRequest, FloatArray
from vsr_core.errors import PluginError
from vsr_core.local import NumpyHead

from .forms import Graph, IdArray
from .graph import output_name
from .reading import SourceModel

__all__ = ["TOLERANCE", "measure"]

TOLERANCE: Final = 1e-4
"""The largest difference of a float32 graph from its source that is rounding."""

_LONGEST: Final = 1024
"""Texts this long are beyond every window and every bucket of positions; longer ones would only take longer."""


def measure(graph: Graph, source: SourceModel, request: ExportRequest, *, folder: Path, plugin: str) -> ExportTolerance:
    """The largest difference between a graph and transformers, which reads each text alone and without padding.

    :param folder: where ``head.safetensors`` lies, for a source with a head.
    :param plugin: the backend that exports.
    :raises PluginError: a difference over :data:`TOLERANCE`, or an output that is no finite number.
    """
    head = None
    if source.head is not None:
        head = NumpyHead.read(folder, source.head.layout, hidden_size=source.hidden_size)
    layers, worst, texts = request.layers, 0.0, 0
    for batch in _batches(source, min(request.spec.max_tokens or _LONGEST, _LONGEST)):
        states = graph(_padded(batch, source), [output_name(layer) for layer in layers])
        for row, rows in enumerate(batch):
            found = [state[row, : rows.shape[1]] for state in states]
            expected = _expected(source, layers, rows)
            if head is not None:
                found.append(head.logits(found[-1]))
            worst = max(worst, *(_difference(*pair) for pair in zip(found, expected, strict=True)))
            texts += 1
    if not worst <= TOLERANCE:
        raise PluginError(
            f"{request.source}: the exported graph differs from transformers by {worst:.1e}, over {TOLERANCE:g}, so it"
            " is not kept; export with other versions of torch and the runtime, or report it",
            plugin=plugin,
            stage="run",
        )
    return ExportTolerance(max_abs=worst, texts=texts)


def _batches(source: SourceModel, limit: int) -> Iterator[list[IdArray]]:
    """Batches of one to five texts, each text an array of rows: ids and, where the model reads them, types."""
    random = np.random.default_rng(0)
    short = max(1, limit // 8)
    for lengths in (
        (1,),
        (limit,),
        (limit, 1),
        (2, limit // 2 + 1, 3),
        tuple(random.integers(1, short + 1, 4)),
        (limit, *random.integers(1, limit + 1, 4)),
    ):
        yield [_text(source, min(int(length), limit), random) for length in lengths]


def _text(source: SourceModel, length: int, random: np.random.Generator) -> IdArray:
    ids = random.integers(0, source.vocabulary - 1, length)
    ids[ids >= source.padding] += 1  # a padding id within a text is read in ways of its own by some families
    types = (np.arange(length) >= length // 2).astype(np.int64)
    return np.stack([ids, types] if source.types else [ids])


def _padded(batch: Sequence[IdArray], source: SourceModel) -> dict[str, IdArray]:
    """The feeds of a batch, padded on the right; by zeros, as the engines do, whatever the padding id is."""
    longest = max(rows.shape[1] for rows in batch)
    feeds = {name: np.zeros((len(batch), longest), np.int64) for name in source.inputs}
    for index, rows in enumerate(batch):
        length = rows.shape[1]
        feeds["attention_mask"][index, :length] = 1
        feeds["input_ids"][index, :length] = rows[0]
        if source.types:
            feeds["token_type_ids"][index, :length] = rows[1]
    return feeds


def _expected(source: SourceModel, layers: Sequence[int], rows: IdArray) -> list[FloatArray]:
    """The hidden states of one text ``[tokens, hidden]`` by layer, then the logits where there is a head."""
    ids = torch.from_numpy(rows[:1])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if source.types:
        inputs["token_type_ids"] = torch.from_numpy(rows[1:])
    with torch.inference_mode():
        found = [state[0].numpy() for state in source.exits(layers, **inputs)]
        if source.head is not None:
            found.append(source.logits(**inputs)[0].numpy())
    return found


def _difference(found: FloatArray, expected: FloatArray) -> float:
    """The largest difference of two arrays; infinite where one of them is not finite, or shapes differ."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - expected).max())
