from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from safetensors.numpy import save_file
from vsr_core.catalog import (
    CORE_FAMILIES,
    ExitLayer,
    ExportManifest,
    HeadLayout,
    check_files,
    read_manifest,
    specify,
    write_manifest,
)
from vsr_core.contract import (
    BackendId,
    CallContext,
    CatalogEntry,
    Choice,
    EmbeddingRequest,
    LoadRequest,
    PoolingSpec,
    SequenceClassificationRequest,
)
from vsr_core.errors import InferenceError
from vsr_core.local import (
    BatchRow,
    BatchShape,
    GraphEngine,
    GraphLayout,
    NumpyHead,
    RaggedBatch,
    WantHidden,
    WantLogits,
    WantPooled,
    build_encoder,
    plan_fused,
    plan_graph,
    pool,
    read_layout,
)
from vsr_core.taxonomy import Capability

HIDDEN, LAYERS, LABELS = 8, 3, 2
LAYOUT = GraphLayout(hidden={1: "hidden_1", 3: "hidden_3"}, layers=LAYERS, hidden_size=HIDDEN, types=True)
MEAN = WantPooled(PoolingSpec(modes=("mean",)))


@dataclass
class NumpyGraph:
    """A graph with real, if small, mathematics, whose answers at padded places are far off.

    With ``quantized``, numbers depend on the widest of the whole batch, as with dynamic quantisation.
    """

    inputs: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids")
    outputs: tuple[str, ...] = ("hidden_1", "hidden_3")
    quantized: bool = False
    spoil: Callable = lambda name, value: value
    runs: list[tuple[dict, tuple[str, ...]]] = field(default_factory=list)
    closed: int = 0

    def __post_init__(self):
        rng = np.random.default_rng(5)
        self.table = rng.normal(size=(30, HIDDEN))
        self.mixers = rng.normal(size=(LAYERS, HIDDEN, HIDDEN))
        self.head = rng.normal(size=(HIDDEN, LABELS))

    def run(self, feeds, outputs):
        self.runs.append((dict(feeds), tuple(outputs)))
        ids = feeds["input_ids"]
        mask = feeds.get("attention_mask", np.ones_like(ids))[..., None]
        x = self.table[ids] + 0.1 * feeds.get("token_type_ids", np.zeros_like(ids))[..., None]
        found = {}
        for layer, mixer in enumerate(self.mixers, start=1):
            x = (x + (x * mask).sum(1, keepdims=True) / mask.sum(1, keepdims=True)) @ mixer
            if self.quantized:
                step = np.abs(x).max() / 7
                x = np.round(x / step) * step
            x = np.tanh(0.3 * x)
            found[f"hidden_{layer}"] = np.where(mask, x, 1e6).astype(np.float32)
        found["logits"] = (x[:, 0] @ self.head).astype(np.float32)
        found["token_logits"] = (np.where(mask, x, 1e6) @ self.head).astype(np.float32)
        found["sentence_embedding"] = ((x * mask).sum(1) / mask.sum(1)).astype(np.float32)
        return [self.spoil(name, found[name]) for name in outputs]

    def close(self):
        self.closed += 1


def batch(*sequences, rows=None, types=None):
    """Sequences of ids as one batch; by default the native hidden states of each are wanted."""
    lengths = [len(ids) for ids in sequences]
    ids = np.concatenate([np.array(ids, np.int32) for ids in sequences])
    return RaggedBatch(
        ids=ids,
        type_ids=np.zeros_like(ids) if types is None else np.array(types, np.int32),
        offsets=np.cumsum([0, *lengths], dtype=np.int32),
        prompt_tokens=np.zeros(len(lengths), np.int32),
        rows=tuple(rows or [BatchRow(number, WantHidden()) for number in range(len(lengths))]),
    )


def head(kind="sequence"):
    rng = np.random.default_rng(9)
    return NumpyHead(
        layout=HeadLayout(kind=kind, labels=LABELS, pool="cls" if kind == "sequence" else None),
        dense=None,
        dense_bias=None,
        norm=None,
        norm_bias=None,
        classifier=rng.normal(size=(LABELS, HIDDEN)).astype(np.float32),
        bias=np.zeros(LABELS, np.float32),
    )


def test_a_sequence_is_answered_in_a_padded_batch_as_it_is_alone():
    engine = GraphEngine(NumpyGraph(), LAYOUT)
    sequences = [(2, 5, 9, 3), (2, 3), (2, 7, 7, 7, 1, 4, 3)]
    together = engine.run(batch(*sequences)).rows
    for ids, found in zip(sequences, together, strict=True):
        assert (found.shape, found.dtype) == ((len(ids), HIDDEN), np.float32)
        np.testing.assert_allclose(found, engine.run(batch(ids)).rows[0], atol=1e-6)


def test_the_graph_is_fed_zeros_where_there_is_no_token():
    graph = NumpyGraph()
    GraphEngine(graph, LAYOUT).run(batch((2, 5, 3), (2,), types=[0, 1, 1, 0]))
    (feeds, _), *others = graph.runs
    assert not others
    assert {name: value.tolist() for name, value in feeds.items()} == {
        "input_ids": [[2, 5, 3], [2, 0, 0]],
        "attention_mask": [[1, 1, 1], [1, 0, 0]],
        "token_type_ids": [[0, 1, 1], [0, 0, 0]],
    }
    assert all(value.dtype == np.int64 and value.flags.c_contiguous for value in feeds.values())


def test_a_graph_without_types_is_not_fed_them():
    graph = NumpyGraph()
    GraphEngine(graph, replace(LAYOUT, types=False)).run(batch((2, 3), types=[1, 1]))
    assert sorted(graph.runs[0][0]) == ["attention_mask", "input_ids"]


def test_one_run_answers_every_layer_and_every_kind_of_row():
    graph, classifier = NumpyGraph(), head()
    engine = GraphEngine(graph, LAYOUT, head=classifier)
    rows = [
        BatchRow(1, WantHidden(), layer=1),
        BatchRow(0, WantLogits()),
        BatchRow(1, WantLogits(), layer=1),
        BatchRow(0, WantHidden()),
    ]
    early, logits, early_logits, late = engine.run(batch((2, 5, 3), (2, 9), rows=rows)).rows
    assert [outputs for _, outputs in graph.runs] == [("hidden_1", "hidden_3")]
    assert (early.shape, late.shape) == ((2, HIDDEN), (3, HIDDEN))
    np.testing.assert_allclose(logits, classifier.logits(late), atol=1e-6)
    np.testing.assert_allclose(early_logits, classifier.logits(early), atol=1e-6)


def test_only_the_outputs_that_are_wanted_are_computed():
    graph = NumpyGraph()
    GraphEngine(graph, LAYOUT).run(batch((2, 3), rows=[BatchRow(0, WantHidden(), layer=1)]))
    assert graph.runs[0][1] == ("hidden_1",)


def test_a_head_of_tokens_answers_without_the_padding():
    classifier = head("token")
    engine = GraphEngine(NumpyGraph(), LAYOUT, head=classifier)
    rows = [BatchRow(number, want) for number in (0, 1) for want in (WantLogits(), WantHidden())]
    logits, hidden, other, _ = engine.run(batch((2, 5, 3), (2,), rows=rows)).rows
    assert (logits.shape, other.shape) == ((3, LABELS), (1, LABELS))
    np.testing.assert_allclose(logits, classifier.logits(hidden), atol=1e-5)


@pytest.mark.parametrize(("name", "shapes"), [("logits", [(2,), (2,)]), ("token_logits", [(3, 2), (1, 2)])])
def test_a_graph_may_have_a_head_of_its_own(name, shapes):
    engine = GraphEngine(NumpyGraph(), replace(LAYOUT, hidden={}, logits=name))
    assert engine.reduces == {"logits"}
    found = engine.run(batch((2, 5, 3), (2,), rows=[BatchRow(0, WantLogits()), BatchRow(1, WantLogits())])).rows
    assert [row.shape for row in found] == shapes
    assert max(np.abs(row).max() for row in found) < 1e3


def test_a_graph_may_give_nothing_but_its_pooling():
    layout = replace(LAYOUT, hidden={}, pooled="sentence_embedding")
    engine = GraphEngine(NumpyGraph(), layout)
    assert "mean" in engine.reduces
    (found,) = engine.run(batch((2, 5, 3), rows=[BatchRow(0, MEAN)])).rows
    (hidden,) = GraphEngine(NumpyGraph(), LAYOUT).run(batch((2, 5, 3))).rows
    np.testing.assert_allclose(found, pool(hidden, MEAN.spec), atol=1e-6)


@pytest.fixture
def exported(toy_folder):
    """The folder of a small exported classifier with two exits, labels in its ``config.json``."""
    config = {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification"],
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": 16,
        "id2label": {"0": "calm", "1": "angry"},
    }
    (toy_folder / "config.json").write_text(json.dumps(config))
    (toy_folder / "model.onnx").write_bytes(b"graph")
    classifier = head()
    tensors = {"classifier.weight": classifier.classifier, "classifier.bias": classifier.bias}
    save_file(tensors, toy_folder / "head.safetensors")
    files = ("config.json", "model.onnx", "head.safetensors")
    manifest = ExportManifest(
        family="bert",
        architecture="BertForSequenceClassification",
        capabilities=(Capability.SEQUENCE_CLASSIFICATION,),
        hidden_size=HIDDEN,
        layers=LAYERS,
        exits=tuple(ExitLayer(layer=layer, output=name) for layer, name in LAYOUT.hidden.items()),
        max_tokens=16,
        inputs=NumpyGraph.inputs,
        files={name: hashlib.sha256((toy_folder / name).read_bytes()).hexdigest() for name in files},
        head=classifier.layout,
    )
    write_manifest(toy_folder, manifest)
    return toy_folder


@pytest.fixture
def load():
    """Loads an exported folder as an engine's loader does, and frees it in the end."""
    made = []

    def make(folder, graph=None, **stated):
        entry = CatalogEntry(name="model", source=str(folder), **stated)
        spec = specify(entry, folder, families={family.name: family for family in CORE_FAMILIES})
        manifest, graph = read_manifest(folder), graph or NumpyGraph()
        found = None
        if manifest is not None:
            check_files(folder, manifest)
            found = NumpyHead.read(folder, manifest.head, hidden_size=HIDDEN) if manifest.head is not None else None
        layout = read_layout(folder, spec, manifest=manifest, inputs=graph.inputs, outputs=graph.outputs)
        request = LoadRequest(backend_id=BackendId("toy", "model"), entry=entry, path=folder, spec=spec)
        choice = Choice(requested="auto", actual="cpu")
        handle = build_encoder(request, GraphEngine(graph, layout, head=found), device=choice, dtype=choice)
        made.append(handle)
        return handle

    yield make
    for handle in made:
        while handle.base.leases > 0:
            handle.base.release()


def ask(handle, request):
    return asyncio.run(handle.infer(request, CallContext(request_id="q1")))


def test_an_exported_classifier_answers_with_its_labels_at_every_exit(load, exported):
    handle = load(exported)
    assert handle.info.exit_layers == (1, 3)
    texts = ("the cat", "", "a dog ran on the mat")
    answer = ask(handle, SequenceClassificationRequest(texts=texts, logits=True))
    assert {result.label for result in answer.results} <= {"calm", "angry"}
    for text, result in zip(texts, answer.results, strict=True):
        (alone,) = ask(handle, SequenceClassificationRequest(texts=(text,), logits=True)).results
        np.testing.assert_allclose(result.logits, alone.logits, atol=1e-5)
    early = ask(handle, SequenceClassificationRequest(texts=texts, logits=True, layer=1))
    assert not np.allclose(early.results[0].logits, answer.results[0].logits, atol=1e-3)


def test_a_graph_without_a_manifest_embeds_by_the_config_and_poolings_beside_it(load, exported):
    for name in ("vsr_manifest.json", "head.safetensors"):
        (exported / name).unlink()
    config = json.loads((exported / "config.json").read_text()) | {"architectures": ["BertModel"]}
    (exported / "config.json").write_text(json.dumps(config))
    handle = load(exported, pooling=("mean",), normalize=False)
    texts = ("the cat", "", "a dog ran on the mat")
    vectors = ask(handle, EmbeddingRequest(texts=texts)).vectors
    for text, vector in zip(texts, vectors, strict=True):
        alone = ask(handle, EmbeddingRequest(texts=(text,))).vectors[0]
        np.testing.assert_allclose(vector, alone, atol=1e-6)


def test_a_broken_graph_is_an_inference_error_that_says_how(load, exported):
    handle = load(exported, graph=NumpyGraph(spoil=lambda name, value: value[..., :3]))
    with pytest.raises(InferenceError, match=r"the output 'hidden_3' of the graph has the shape \[1, 4, 3\]"):
        ask(handle, SequenceClassificationRequest(texts=("the cat",)))


def test_numbers_that_depend_on_the_batch_are_kept_apart():
    graph = NumpyGraph(quantized=True)
    sequences = [(2, 5, 9, 3), (2, 3), (2, 7, 7, 7, 1, 4, 3)]
    engine = GraphEngine(graph, replace(LAYOUT, alone=True))
    together = engine.run(batch(*sequences)).rows
    assert [feeds["input_ids"].shape for feeds, _ in graph.runs] == [(1, 4), (1, 2), (1, 7)]
    for ids, found in zip(sequences, together, strict=True):
        np.testing.assert_array_equal(found, engine.run(batch(ids)).rows[0])
    mixed = GraphEngine(graph, LAYOUT).run(batch(*sequences)).rows
    assert not np.allclose(mixed[1], together[1], atol=1e-3)


def test_values_that_are_not_finite_are_handed_on_for_their_sequence_alone():
    def spoil(name, value):
        value[1] = np.nan
        return value

    first, second, third = GraphEngine(NumpyGraph(spoil=spoil), LAYOUT).run(batch((2, 3), (2, 5, 3), (2,))).rows
    assert np.isnan(second).all()
    assert np.isfinite(first).all()
    assert np.isfinite(third).all()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda value: value[..., :5],
            r"'hidden_3' of the graph has the shape \[2, 3, 5\], it should have \[2, 3, 8\]",
        ),
        (lambda value: value[:, 0], r"'hidden_3' of the graph has the shape \[2, 8\]"),
        (lambda value: value[:1], r"the shape \[1, 3, 8\], it should have \[2, 3, 8\]"),
    ],
)
def test_an_output_of_another_shape_is_named(spoil, message):
    engine = GraphEngine(NumpyGraph(spoil=lambda name, value: spoil(value)), LAYOUT)
    with pytest.raises(ValueError, match=message):
        engine.run(batch((2, 5, 3), (2,)))


def test_logits_of_another_shape_are_named():
    graph = NumpyGraph(spoil=lambda name, value: value[0])
    engine = GraphEngine(graph, replace(LAYOUT, logits="logits"))
    with pytest.raises(ValueError, match=r"it should have \[2, labels\] or \[2, 3, labels\]"):
        engine.run(batch((2, 5, 3), (2,), rows=[BatchRow(0, WantLogits())]))


def test_a_row_the_graph_cannot_answer_is_refused_with_what_it_has():
    engine = GraphEngine(NumpyGraph(), LAYOUT)
    with pytest.raises(ValueError, match="no hidden after layer 2; it has hidden states after 1, 3"):
        engine.run(batch((2, 3), rows=[BatchRow(0, WantHidden(), layer=2)]))
    with pytest.raises(ValueError, match="no logits after layer 3"):
        engine.run(batch((2, 3), rows=[BatchRow(0, WantLogits())]))


def test_a_sequence_without_tokens_never_reaches_the_graph():
    graph = NumpyGraph()
    with pytest.raises(ValueError, match="sequence 1 has no tokens"):
        GraphEngine(graph, LAYOUT).run(batch((2, 3), (), (2,)))
    assert not graph.runs


def test_the_plan_counts_scores_in_full_and_one_sequence_where_each_is_alone():
    scores = 4 * 4 * LAYOUT.attention_heads * 100**2
    assert plan_graph(LAYOUT, BatchShape(2, 100, 150)) > 2 * scores
    assert scores < plan_graph(replace(LAYOUT, alone=True), BatchShape(2, 100, 150)) < 2 * scores
    assert plan_graph(LAYOUT, BatchShape(2, 200, 300)) > plan_graph(LAYOUT, BatchShape(2, 100, 150))


def test_a_plan_without_scores_grows_with_the_mask_alone():
    short, long = (plan_fused(LAYOUT, BatchShape(1, length, length)) for length in (100, 200))
    assert 2 * short < long < 3 * short
    assert long < plan_graph(LAYOUT, BatchShape(1, 200, 200)) / 4


def test_a_plan_of_the_callers_own_goes_first():
    engine = GraphEngine(NumpyGraph(), LAYOUT, plan=lambda shape: shape.tokens, concurrency=2)
    assert (engine.plan_bytes(BatchShape(2, 100, 150)), engine.concurrency) == (150, 2)


def test_closing_the_engine_closes_the_graph():
    graph = NumpyGraph()
    GraphEngine(graph, LAYOUT).close()
    assert graph.closed == 1


def test_a_batch_is_run_in_parts_that_stay_within_the_tokens_of_a_run():
    graph = NumpyGraph()
    engine = GraphEngine(graph, LAYOUT, run_tokens=8)
    sequences = ((2, 3), (4, 5, 6), (7, 8, 9, 10), (1,), (2, 3, 4, 5, 6, 7, 8, 9, 10, 11))
    rows = engine.run(batch(*sequences)).rows
    assert [feeds["input_ids"].shape for feeds, _ in graph.runs] == [(2, 3), (2, 4), (1, 10)]
    whole = GraphEngine(NumpyGraph(), LAYOUT).run(batch(*sequences)).rows
    for one, other in zip(rows, whole, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert engine.plan_bytes(BatchShape(20, 4, 80)) < GraphEngine(NumpyGraph(), LAYOUT).plan_bytes(
        BatchShape(20, 4, 80)
    )
