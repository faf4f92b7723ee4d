"""Graphs in a folder of a model, through the whole pipeline, held against numpy."""

from __future__ import annotations

import asyncio
import json
import shutil

import numpy as np
import pytest
from tokenizers import Tokenizer
from vsr_core import Runtime
from vsr_core.contract import Preference
from vsr_core.errors import CheckpointError, ConfigError, InvalidInputError, LoadError, NonFiniteOutputError
from vsr_openvino.loading import load_encoder
from vsr_openvino.options import OpenVinoOptions

TEXTS = ["the river bank", "a", "two dog tree and the cat", ""]


def runtime(folder, **options):
    entry = {"source": str(folder), "backends": ["openvino"]}
    return Runtime({"catalog": {"m": entry}, "backends": {"openvino": {"precision": "fp32", "threads": 1, **options}}})


def ids_of(folder, text):
    return Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids


def load(request):
    return load_encoder(request, OpenVinoOptions(), threads=1)


@pytest.mark.parametrize("form", ["ir", "onnx"])
@pytest.mark.parametrize("signed", [True, False])
def test_vectors_are_those_of_the_reference_at_every_exit(embedder, model, sign, form, signed):
    folder = embedder(form)
    if signed:
        sign(folder)
    exits = (1, 2) if signed else (2,)
    with runtime(folder) as vsr:
        for layer in (*exits, None):
            response = vsr.embed(TEXTS, layer=layer)
            assert response.envelope.layer == (layer or 2)
            for text, vector in zip(TEXTS, response.vectors, strict=True):
                expected = model.hidden(ids_of(folder, text), layer or 2).mean(0)
                np.testing.assert_allclose(vector, expected, atol=1e-5)
                np.testing.assert_allclose(vsr.embed(text, layer=layer).vectors[0], expected, atol=1e-5)
        info = vsr.load("openvino:m")
    assert (info.device.requested, info.device.actual) == ("auto", "cpu")
    assert (info.dtype.requested, info.dtype.actual) == ("require:fp32", "float32")
    assert info.exit_layers == exits


def test_a_file_for_each_exit_is_as_good_as_outputs_of_one(embedder, model, write_onnx):
    folder = embedder("onnx", name="onnx/model.onnx", outputs=("last_hidden_state",))
    write_onnx(folder / "onnx" / "layer-1" / "model.onnx", model, outputs=("last_hidden_state",), deep=1)
    with runtime(folder) as vsr:
        assert vsr.load("openvino:m").exit_layers == (1, 2)
        for layer in (1, 2):
            expected = model.hidden(ids_of(folder, "a cat"), layer).mean(0)
            np.testing.assert_allclose(vsr.embed("a cat", layer=layer).vectors[0], expected, atol=1e-5)
        with pytest.raises(InvalidInputError, match="is not offered"):
            vsr.embed("a cat", layer=3)


def test_a_classifier_answers_from_the_head_beside_its_graph(classifier, model):
    folder, weight = classifier(model)
    with runtime(folder) as vsr:
        result = vsr.classify("two dog tree", logits=True).results[0]
        hidden = model.hidden(ids_of(folder, "two dog tree"))
        np.testing.assert_allclose(list(result.logits), weight @ hidden[0], atol=1e-4)


def test_a_token_classifier_tags_by_the_head_of_every_token(classifier, model):
    folder, weight = classifier(model, head="token")
    labels = [label for _, label in sorted(json.loads((folder / "config.json").read_text())["id2label"].items())]
    best = (model.hidden(ids_of(folder, "two dog tree")) @ weight.T).argmax(1)[1:-1]
    with runtime(folder) as vsr:
        spans = vsr.tag("two dog tree", aggregation="none").results[0].spans
        assert [span.label for span in spans] == [labels[index] for index in best if labels[index] != "O"]


@pytest.mark.parametrize("head", ["nli", "reranker"])
def test_pairs_are_told_apart_by_their_types(classifier, model, head):
    folder, weight = classifier(model, head=head)
    first, second = "two dog tree", "the river bank"
    pair = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(first, second)
    logits = weight @ model.hidden(pair.ids, types=pair.type_ids)[0]
    with runtime(folder) as vsr:
        if head == "nli":
            found = list(vsr.nli([(first, second)]).results[0].distribution.values())
            expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        else:
            found = [vsr.rerank(first, [second]).results[0].score]
            expected = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_head_inside_the_graph_is_used_at_full_depth(classifier, model, write_ir):
    folder, _ = classifier(model)
    for name in ("vsr_manifest.json", "head.safetensors"):
        (folder / name).unlink()
    write_ir(folder / "openvino_model.xml", model, outputs=("logits",))
    with runtime(folder) as vsr:
        result = vsr.classify("two dog tree", logits=True).results[0]
        expected = model.classifier @ model.hidden(ids_of(folder, "two dog tree"))[0]
        np.testing.assert_allclose(list(result.logits), expected, atol=1e-4)


def test_a_head_with_another_number_of_labels_is_refused(classifier, model, write_ir):
    folder, _ = classifier(model)
    for name in ("vsr_manifest.json", "head.safetensors"):
        (folder / name).unlink()
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {"0": "one", "1": "two", "2": "three"}
    (folder / "config.json").write_text(json.dumps(config | {"label2id": {"one": 0, "two": 1, "three": 2}}))
    write_ir(folder / "openvino_model.xml", model, outputs=("logits",))
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="gives 4 logits, and there are 3 labels"):
        vsr.classify("a")


def test_a_required_device_that_is_not_there_is_refused_and_a_preferred_one_reported(embedder):
    folder = embedder()
    with runtime(folder, device="require:npu") as vsr, pytest.raises(LoadError, match=r"lists cpu.*'prefer:npu'"):
        vsr.load("openvino:m")
    with runtime(folder, device="prefer:gpu") as vsr:
        found = vsr.load("openvino:m").device
        assert (found.requested, found.actual) == ("prefer:gpu", "cpu")
        assert "no 'gpu'" in found.reason


def test_auto_gives_bf16_only_after_the_probe_and_says_so(embedder, load_request):
    request = load_request(embedder(), precision=Preference())
    choice = load(request).info.dtype
    assert choice.actual in ("float32", "bfloat16")
    assert "probe texts" in choice.reason or "natively" in choice.reason
    assert (choice.actual == "bfloat16") is choice.reason.startswith("native bf16")


def test_weights_that_are_stored_in_half_are_told(embedder, load_request):
    request = load_request(embedder(compress=True), precision=Preference.parse("fp32"))
    assert load(request).info.dtype.reason == "the file holds the weights in float16"


def test_what_is_compiled_is_kept_in_the_folder_it_was_given(embedder, load_request, tmp_path):
    request = load_request(embedder(), precision=Preference.parse("fp32"), cache_dir=tmp_path / "cache")
    load(request)
    assert [path.parent.name for path in (tmp_path / "cache").rglob("*.blob")] == [request.spec.content_hash[:16]]


def test_a_cache_that_cannot_be_written_is_done_without(embedder, load_request, tmp_path):
    (tmp_path / "cache").write_text("a file in the way")
    assert load(load_request(embedder(), cache_dir=tmp_path / "cache")).info.dtype.actual


def test_files_of_two_exports_are_refused(embedder, draw, sign, write_ir, tmp_path):
    folder = embedder()
    sign(folder)
    other = write_ir(tmp_path / "other" / "openvino_model.xml", draw(seed=3))
    shutil.copy(other.with_suffix(".bin"), folder / "openvino_model.bin")
    with (
        runtime(folder) as vsr,
        pytest.raises(CheckpointError, match=r"openvino_model\.bin.*SHA-256.*export the model"),
    ):
        vsr.embed("a")


def test_an_ir_without_its_weights_is_refused_by_name(embedder, sign):
    folder = embedder()
    sign(folder)
    (folder / "openvino_model.bin").unlink()
    for source in (folder, folder / "openvino_model.xml"):
        with runtime(source) as vsr:
            (problem,) = vsr.check().problems
            assert "openvino_model.bin, which is missing: copy it too, or export the model again" in problem.message
            with pytest.raises(CheckpointError, match=r"openvino_model\.bin, which is missing"):
                vsr.embed("a")


def test_an_input_that_nothing_feeds_is_refused(embedder, model, write_onnx):
    folder = embedder("onnx")
    proto = model.proto()
    proto.graph.input[1].name = "position_ids"
    proto.graph.node[1].input[0] = "position_ids"
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="'position_ids'"):
        vsr.embed("a")


def test_a_tokenizer_with_more_ids_than_the_graph_has_rows_is_refused(embedder, draw):
    folder = embedder(of=draw(vocabulary=20))
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="20"):
        vsr.embed("a")


def test_a_model_that_answers_nan_is_refused_at_load(embedder, draw):
    broken = draw()
    broken.layers[1][3, 3] = np.nan
    with runtime(embedder(of=broken)) as vsr, pytest.raises(NonFiniteOutputError, match="converted wrongly"):
        vsr.load("openvino:m")


def test_a_file_replaced_under_a_loaded_model_is_served_after_a_swap(embedder, draw, write_ir):
    folder = embedder()
    with runtime(folder) as vsr:
        first = vsr.embed("a cat")
        write_ir(folder / "openvino_model.xml", other := draw(seed=9))
        np.testing.assert_array_equal(vsr.embed("a cat").vectors, first.vectors)
        vsr.swap("openvino:m")
        expected = other.hidden(ids_of(folder, "a cat")).mean(0)
        np.testing.assert_allclose(vsr.embed("a cat").vectors[0], expected, atol=1e-5)


def test_a_model_closes_and_loads_again(embedder):
    with runtime(embedder()) as vsr:
        first = vsr.embed("a cat").vectors
        vsr.unload("openvino:m")
        np.testing.assert_array_equal(vsr.embed("a cat").vectors, first)


@pytest.mark.parametrize(("performance", "workers"), [("latency", {1}), ("throughput", {1, 2})])
def test_the_performance_hint_decides_on_how_many_batches_run_side_by_side(
    embedder, load_request, performance, workers
):
    handle = load_encoder(load_request(embedder()), OpenVinoOptions(performance=performance), threads=2)
    assert handle.base.batcher.stats().workers in workers
    asyncio.run(handle.close())


@pytest.mark.parametrize(("wrong", "message"), [({"performance": "fast"}, "performance"), ({"pin": 1}, "no option")])
def test_other_options_are_refused(embedder, wrong, message):
    with runtime(embedder(), **wrong) as vsr, pytest.raises(ConfigError, match=message):
        vsr.load("openvino:m")


def test_a_device_that_does_not_take_the_model_is_told_and_the_next_one_serves(embedder, load_request, monkeypatch):
    monkeypatch.setattr("vsr_openvino.loading.candidates", lambda *_, **__: ("NPU", "CPU"))  # as if it were listed
    info = load(load_request(embedder(), device=Preference.parse("prefer:npu"))).info
    assert info.device.actual == "cpu"
    assert info.device.reason.startswith("npu does not take the model: ")


def test_a_required_device_that_does_not_take_the_model_is_an_error(embedder, load_request, monkeypatch):
    monkeypatch.setattr("vsr_openvino.loading.candidates", lambda *_, **__: ("NPU",))
    with pytest.raises(LoadError, match="cannot be loaded: npu does not take the model"):
        load(load_request(embedder(), device=Preference.parse("require:npu")))
