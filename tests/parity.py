"""The same checkpoint on every engine: what is compared, which combinations there are, and a cover of their pairs."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
from vsr_core import Runtime
from vsr_core.contract import ClassificationResponse, EmbeddingResponse, RerankingResponse, Response, TaggingResponse
from vsr_core.testing import EncoderFamily, EncoderHead, EncoderShape, write_encoder

from tests.oracle import TEXTS

__all__ = ["CLOSE", "COMPARED", "ENGINES", "FAMILIES", "HEADS", "Case", "Workshop", "cover", "pairs_of", "product"]

CLOSE = 1e-4
QUERY = "query: the bank of the river"
DIMENSIONS = (None, 8)
ENGINES = {
    "torch": ("torch", None),
    "onnx": ("onnx", "onnx"),
    "openvino": ("openvino", "onnx"),
    "openvino-ir": ("openvino", "openvino"),
    "int8": ("onnx", "int8"),
}
"""The backend of an engine, and the backend that its files are exported for; ``int8`` are quantised ones for onnx."""

COMPARED = ("onnx", "openvino", "openvino-ir")
"""What is held against torch, which is held against itself each time: together against alone."""

PRECISE = {"torch": {"precision": "fp32"}, "onnx": {}, "openvino": {"precision": "fp32"}}
FAMILIES: tuple[EncoderFamily, ...] = get_args(EncoderFamily)
MODERN = ("modernbert", "mmbert")


@dataclass(frozen=True)
class Head:
    """What stands on the encoder: the head of the checkpoint, and what its catalog entry says."""

    checkpoint: EncoderHead
    entry: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    families: tuple[str, ...] = FAMILIES


def _pooled(*modes: str) -> Head:
    return Head("embedding", {"pooling": list(modes)})


HEADS = {
    "mean": _pooled("mean"),
    "cls": _pooled("cls"),
    "mean+max": _pooled("mean", "max"),
    "last": _pooled("last"),
    "weighted": _pooled("weighted_mean"),
    "sqrt": _pooled("mean_sqrt_len"),
    "sequence": Head("sequence", config={"classifier_pooling": "mean"}),
    "sequence-cls": Head("sequence", config={"classifier_pooling": "cls"}, families=MODERN),
    "pairs": Head("sequence", {"capability": "pair_classification"}, {"classifier_pooling": "mean"}),
    "token": Head("token"),
    "reranker": Head("reranker"),
}


@dataclass(frozen=True)
class Case:
    """One combination."""

    engine: str
    family: EncoderFamily
    head: str
    layer: int | None = None
    dimensions: int | None = None

    def __str__(self) -> str:
        exit_at = "whole" if self.layer is None else f"layer{self.layer}"
        return "-".join(
            [self.engine, self.family, self.head, exit_at, *([f"d{self.dimensions}"] if self.dimensions else [])]
        )

    @property
    def possible(self) -> bool:
        """Vectors alone have dimensions; DeBERTa runs whole on torch; requests for rerankers name no layer."""
        whole = self.family == "deberta" or self.head == "reranker"
        vectors = HEADS[self.head].checkpoint == "embedding"
        return (
            self.family in HEADS[self.head].families
            and (self.layer is None or not whole)
            and (self.dimensions is None or vectors)
        )


def product(*, layers: int, engines: Sequence[str] = COMPARED, heads: Sequence[str] = tuple(HEADS)) -> list[Case]:
    """Every possible combination for encoders of so many layers."""
    exits = (None, *range(1, layers))
    found = (Case(*levels) for levels in itertools.product(engines, FAMILIES, heads, exits, DIMENSIONS))
    return [case for case in found if case.possible]


def pairs_of(case: Case) -> frozenset[Any]:
    """The pairs of values that a combination shows together."""
    values = [(each.name, getattr(case, each.name)) for each in fields(case)]
    return frozenset(itertools.combinations(values, 2))


def cover(cases: Sequence[Case]) -> list[Case]:
    """Few of the cases that show together whatever pair of values all of them show; greedy, always the same."""
    missing = frozenset().union(*map(pairs_of, cases))
    chosen = []
    while missing:
        used = Counter(case.engine for case in chosen)
        best = max(cases, key=lambda case: (len(missing & pairs_of(case)), -used[case.engine]))
        missing -= pairs_of(best)
        chosen.append(best)
    return chosen


class Workshop:
    """Checkpoints of so many layers, their exports with every exit in them, and torch's answers: each made once."""

    def __init__(self, root: Path, *, layers: int) -> None:
        self._root = root
        self._layers = layers
        self._written: dict[str, Path] = {}
        self._expected: dict[Case, tuple[list[np.ndarray], list[np.ndarray]]] = {}
        self._open: dict[tuple[str, str, str], Runtime] = {}

    def check(self, case: Case) -> float:
        """Hold an engine's answers, alone and in a mixed batch, against torch's of each text alone; the largest gap."""
        expected, together = self.expected(case)
        found = [together, self.answers(case, [TEXTS]), self.answers(case, [[text] for text in TEXTS])]
        gaps = [0.0]
        for answers in found:
            for one, other in zip(answers, expected, strict=True):
                np.testing.assert_allclose(one, other, atol=CLOSE, rtol=0)
                gaps.append(float(np.abs(one - other).max(initial=0)))
        return max(gaps)

    def expected(self, case: Case) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """What torch answers to each text alone, and to all of them at once."""
        same = Case("torch", case.family, case.head, case.layer, case.dimensions)
        if same not in self._expected:
            alone, together = self.answers(same, [[text] for text in TEXTS]), self.answers(same, [TEXTS])
            self._expected[same] = alone, together
        return self._expected[same]

    def answers(self, case: Case, batches: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """The numbers an engine gives for each text of each batch."""
        runtime = self._runtime(case)
        name = f"{ENGINES[case.engine][0]}:m"
        return [row for texts in batches for row in _numbers(texts, _ask(runtime, case, texts, name))]

    def close(self) -> None:
        """Close what is open."""
        for runtime in self._open.values():
            runtime.close()
        self._open.clear()

    def _runtime(self, case: Case) -> Runtime:
        """A runtime with the model of a case; of each backend the last one stays open."""
        key = (case.engine, case.family, case.head)
        if key not in self._open:
            for other in [other for other in self._open if other[0] == case.engine]:
                self._open.pop(other).close()
            self._open[key] = self._opened(case)
        return self._open[key]

    def _opened(self, case: Case) -> Runtime:
        backend, form = ENGINES[case.engine]
        entry = dict(HEADS[case.head].entry) | {"source": str(self._files(case, form)), "backends": [backend]}
        if case.family != "deberta":
            entry["layers"] = [*range(1, self._layers)]
        if form == "int8":
            entry["artifact"] = "quantized"
        if HEADS[case.head].checkpoint == "embedding":
            entry["dimensions"] = [8]
        return Runtime({"catalog": {"m": entry}, "backends": {backend: PRECISE[backend]}})

    def _files(self, case: Case, form: str | None) -> Path:
        head = HEADS[case.head]
        pooling = head.config.get("classifier_pooling", "mean") if case.family in MODERN else "mean"
        name = f"{case.family}-{head.checkpoint}-{pooling}"
        if name not in self._written:
            config = head.config if case.family in MODERN else {}
            options = {"head": head.checkpoint, "shape": _shape(case.family, self._layers), "config": config, "seed": 3}
            self._written[name] = write_encoder(self._root / name, case.family, **options)
        if form is None:
            return self._written[name]
        exported = f"{name}-{form}"
        if exported not in self._written:
            pooled = {"pooling": ["mean"]} if head.checkpoint == "embedding" else {}
            with Runtime({"catalog": {"m": {"source": str(self._written[name]), **pooled}}}) as runtime:
                to, quantize = ("onnx", "int8") if form == "int8" else (form, None)
                out, layers = self._root / exported, range(1, self._layers)
                report = runtime.export("m", to=to, out=out, layers=layers, quantize=quantize)
            _leave_pooling_open(report.manifest)
            self._written[exported] = report.folder
        return self._written[exported]


def _shape(family: str, layers: int) -> EncoderShape:
    """A tiny shape by which the family is still recognised."""
    if family == "minilm":
        return EncoderShape(hidden=384, layers=layers, heads=12, intermediate=96)
    if family == "mmbert":
        return EncoderShape(hidden=16, layers=layers, heads=2, intermediate=24)
    return EncoderShape(layers=layers)


def _leave_pooling_open(manifest: Path) -> None:
    """Let one export be served with any pooling, as its source is."""
    stated = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps(stated | {"pooling": None}), encoding="utf-8")


def _ask(runtime: Runtime, case: Case, texts: Sequence[str], name: str) -> Response:
    options: dict[str, Any] = {"model": name, "truncate": "end"}
    if case.head == "reranker":
        return runtime.rerank(QUERY, list(texts), **options)
    options["layer"] = case.layer
    if case.head == "pairs":
        return runtime.nli([(text, QUERY) for text in texts], logits=True, **options)
    if case.head == "token":
        return runtime.tag(list(texts), aggregation="none", **options)
    if case.head.startswith("sequence"):
        return runtime.classify(list(texts), logits=True, **options)
    return runtime.embed(list(texts), dimensions=case.dimensions, **options)


def _numbers(texts: Sequence[str], response: Response) -> list[np.ndarray]:
    """The answer to each text as an array."""
    match response:
        case EmbeddingResponse():
            return list(response.vectors)
        case ClassificationResponse():
            return [np.array(result.logits) for result in response.results]
        case RerankingResponse():
            return [np.array([result.score]) for result in sorted(response.results, key=lambda each: each.index)]
        case TaggingResponse():
            spans = [result.spans for result in response.results]
            return [np.array([_tagged(span) for span in found]).reshape(-1, 4) for found in spans]
    raise AssertionError(f"{len(texts)} texts were answered with a {type(response).__name__}")


def _tagged(span: Any) -> tuple[float, ...]:
    return span.start, span.end, sum(map(ord, span.label)), span.score
