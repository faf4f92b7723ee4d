"""Running a compiled graph behind the shared pipeline: what every graph runtime has in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, get_args

import numpy as np
import numpy.typing as npt

from ..contract import FloatArray, PoolingMode
from .engine import BatchRow, BatchShape, EngineOutput, RaggedBatch, Reduction, WantLogits, WantPooled
from .heads import NumpyHead

__all__ = ["GraphEngine", "GraphLayout", "GraphRunner", "plan_fused", "plan_graph"]


class GraphRunner(Protocol):
    """A compiled graph, or several that answer as one, each with an exit of its own."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what it reads."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what it gives."""
        ...

    def run(self, feeds: Mapping[str, npt.NDArray[np.int64]], outputs: Sequence[str]) -> list[FloatArray]:
        """Run once; called from as many threads at once as its engine's ``concurrency`` says.

        :param feeds: C-contiguous int64 ``[batch, sequence]`` for each of its inputs.
        :returns: one array per name in ``outputs``, in this order; no later run may overwrite them.
        """
        ...

    def close(self) -> None:
        """Free the weights; no run is in progress or will follow."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLayout:
    """Which output of a graph is what.

    :param hidden: layer, counted from 1 -> the output with its hidden states ``[batch, sequence, hidden]``.
    :param layers: the native depth.
    :param types: whether the graph reads ``token_type_ids``; ``masked`` whether it reads ``attention_mask``.
    :param logits: the output of a head inside the graph, at the native depth.
    :param pooled: the output of a pooling inside the graph, ``[batch, width]``, used where it has no hidden states.
    :param alone: whether a sequence's numbers depend on what shares its batch, so that each is run by itself.
    :param attention_heads: heads of one layer; with ``inner_size``, the width inside its feed-forward part, they
        decide on the memory a run takes.
    """

    hidden: Mapping[int, str]
    layers: int
    hidden_size: int
    types: bool = False
    masked: bool = True
    logits: str | None = None
    pooled: str | None = None
    alone: bool = False
    attention_heads: int = 16
    inner_size: int | None = None


class GraphEngine:
    """Runs padded batches on a graph; pooling is left to the pipeline, which does it in numpy without the padding.

    :param head: the classification head over the graph's hidden states, where the model has one outside the graph.
    :param concurrency: how many runs the runner takes side by side.
    :param plan: an upper estimate of the working memory of one run, in bytes; by default :func:`plan_graph`.
    :param run_tokens: padded tokens beyond which a batch is run in parts, for a runtime that gets less through with larger
        ones; None runs it whole.
    """

    def __init__(
        self,
        runner: GraphRunner,
        layout: GraphLayout,
        *,
        head: NumpyHead | None = None,
        concurrency: int = 1,
        plan: Callable[[BatchShape], int] | None = None,
        run_tokens: int | None = None,
    ) -> None:
        self._run_tokens = run_tokens
        self._runner = runner
        self._layout = layout
        self._head = head
        self._concurrency = concurrency
        self._plan = plan

    @property
    def reduces(self) -> frozenset[Reduction]:
        """Logits where there is a head; the pooling of the graph where that is all it gives."""
        layout = self._layout
        found: set[Reduction] = set()
        if self._head is not None or layout.logits is not None:
            found.add("logits")
        if layout.pooled is not None and not layout.hidden:
            found.update(get_args(PoolingMode))
        return frozenset(found)

    @property
    def concurrency(self) -> int:
        """As it was told."""
        return self._concurrency

    def run(self, batch: RaggedBatch) -> EngineOutput:
        """Run the graph once for all rows, in parts, or once for each sequence where those must be alone.

        :raises ValueError: a row that this graph cannot answer, or an output of another shape than it should have.
        """
        if not batch.lengths.all():
            raise ValueError(f"sequence {int(np.argmin(batch.lengths))} has no tokens")
        wanted = [self._output(row) for row in batch.rows]
        names = list(dict.fromkeys(wanted))
        found: dict[str, list[FloatArray]] = {name: [] for name in names}
        for feeds, lengths in self._feeds(batch):
            values = self._runner.run(feeds, names)
            if len(values) != len(names):
                raise ValueError(f"the graph gave {len(values)} outputs for {len(names)}")
            for name, value in zip(names, values, strict=True):
                found[name].extend(self._unpad(name, value, lengths))
        return EngineOutput(self._answers(batch, wanted, found))

    def plan_bytes(self, shape: BatchShape) -> int:
        """The estimate of its largest run, and what all runs leave behind."""
        most = self._most(shape.longest) or shape.sequences
        run = BatchShape(min(shape.sequences, most), shape.longest, min(shape.tokens, most * shape.longest))
        kept = 4 * (shape.sequences - run.sequences) * shape.longest * self._layout.hidden_size
        return (plan_graph(self._layout, run) if self._plan is None else self._plan(run)) + kept

    def close(self) -> None:
        """Close the runner."""
        self._runner.close()

    def _output(self, row: BatchRow) -> str:
        """The output of the graph that a row is answered from."""
        layout, layer = self._layout, row.layer or self._layout.layers
        name = layout.hidden.get(layer)
        if isinstance(row.want, WantLogits) and self._head is None:
            name = layout.logits if layer == layout.layers else None
        elif isinstance(row.want, WantPooled) and not layout.hidden:
            name = layout.pooled if layer == layout.layers else None
        if name is None:
            raise ValueError(f"the graph gives no {row.want.tag} after layer {layer}; it has {self._described()}")
        return name

    def _described(self) -> str:
        layout = self._layout
        parts = [f"hidden states after {', '.join(map(str, sorted(layout.hidden)))}"] if layout.hidden else []
        parts += [f"the output {name!r}" for name in (layout.logits, layout.pooled) if name is not None]
        return " and ".join(parts) or "no output of use"

    def _feeds(self, batch: RaggedBatch) -> Iterator[tuple[dict[str, npt.NDArray[np.int64]], npt.NDArray[np.int32]]]:
        """What to run, and the lengths in it: neighbours padded to the longest of them, or each by itself."""
        for first, end in self._parts(batch.lengths.tolist()):
            offsets = batch.offsets[first : end + 1]
            lengths = np.diff(offsets).astype(np.int32, copy=False)
            real = np.arange(lengths.max()) < lengths[:, None]
            tokens = slice(offsets[0], offsets[-1])
            feeds = {"input_ids": _padded(batch.ids[tokens], real)}
            if self._layout.masked:
                feeds["attention_mask"] = real.astype(np.int64)
            if self._layout.types:
                feeds["token_type_ids"] = _padded(batch.type_ids[tokens], real)
            yield feeds, lengths

    def _parts(self, lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The first of the sequences of each run, and the one after its last."""
        first, longest = 0, 0
        for index, length in enumerate(lengths):
            most = self._most(max(longest, length))
            if index > first and most is not None and index - first + 1 > most:
                yield first, index
                first, longest = index, 0
            longest = max(longest, length)
        yield first, len(lengths)

    def _most(self, longest: int) -> int | None:
        """How many sequences of that length may share a run."""
        if self._layout.alone:
            return 1
        return None if self._run_tokens is None else max(1, self._run_tokens // longest)

    def _unpad(self, name: str, value: FloatArray, lengths: npt.NDArray[np.int32]) -> list[FloatArray]:
        """One output, sequence by sequence, without the padding."""
        count, longest, width = len(lengths), int(lengths.max()), self._layout.hidden_size
        shape = value.shape
        if name == self._layout.logits:
            expected, fits = (
                f"[{count}, labels] or [{count}, {longest}, labels]",
                shape[:-1] in ((count,), (count, longest)),
            )
        elif name == self._layout.pooled:
            expected, fits = f"[{count}, width]", shape[:-1] == (count,)
        else:
            expected, fits = f"[{count}, {longest}, {width}]", shape == (count, longest, width)
        if not fits:
            raise ValueError(f"the output {name!r} of the graph has the shape {list(shape)}, it should have {expected}")
        wide = value.astype(np.float32, copy=False)
        if wide.ndim == 2:
            return list(wide)
        return [row[:length] for row, length in zip(wide, lengths, strict=True)]

    def _answers(
        self, batch: RaggedBatch, wanted: Sequence[str], found: Mapping[str, Sequence[FloatArray]]
    ) -> list[FloatArray]:
        logits: dict[str, list[FloatArray]] = {}
        answers = []
        for row, name in zip(batch.rows, wanted, strict=True):
            values = found[name]
            if isinstance(row.want, WantLogits) and self._head is not None:
                if name not in logits:
                    logits[name] = self._head.logits_of(values)
                values = logits[name]
            answers.append(values[row.sequence])
        return answers


def plan_graph(layout: GraphLayout, shape: BatchShape) -> int:
    """An upper estimate of the working memory of a batch, in bytes.

    Attention scores are written out in full, in float32: scores, their softmax and the mask added to them, beside one
    copy in passing. Then come the layer's activations (states, queries, keys, values, their rotated copies and
    residuals, the inner width as gated layers need it), and every exit's hidden states.
    """
    rows = 1 if layout.alone else shape.sequences
    inner = layout.inner_size or 4 * layout.hidden_size
    scores = 4 * layout.attention_heads * shape.longest**2
    activations = shape.longest * (15 * layout.hidden_size + 4 * inner)
    kept = shape.sequences * shape.longest * layout.hidden_size * max(1, len(layout.hidden))
    return 4 * (rows * (scores + activations) + kept)


def plan_fused(layout: GraphLayout, shape: BatchShape) -> int:
    """As :func:`plan_graph`, for a runtime that computes attention without writing the scores out.

    What is left that grows with the square of the length is the mask.
    """
    rows = 1 if layout.alone else shape.sequences
    inner = layout.inner_size or 4 * layout.hidden_size
    activations = 4 * shape.longest * (3 * layout.hidden_size + inner)
    kept = 4 * shape.sequences * shape.longest * layout.hidden_size * max(1, len(layout.hidden))
    return rows * (activations + shape.longest**2) + kept


def _padded(values: npt.NDArray[np.int32], real: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Ragged values, zeros where ``real`` says that there is no token."""
    padded = np.zeros(real.shape, np.int64)
    padded[real] = values
    return padded
