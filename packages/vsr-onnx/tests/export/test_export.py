"""Whole exports, run with ONNX Runtime itself and with a runtime, against transformers."""

import json

import numpy as np
import onnxruntime
import pytest
from vsr_core import Runtime
from vsr_core.catalog import check_files, read_manifest
from vsr_core.local import NumpyHead
from vsr_core.taxonomy import Artifact

pytestmark = pytest.mark.timeout(120)  # tracing takes seconds, and many of them on a busy machine

COVER = [("bert", "sequence"), ("roberta", "token"), ("modernbert", "sequence"), ("deberta", "embedding")]


@pytest.fixture(params=COVER, ids="-".join)
def result(request, exported):
    return exported(*request.param)


def open_graph(folder):
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])


def padded(sequences, session):
    ids = np.zeros((len(sequences), max(map(len, sequences))), np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)], mask[row, : len(sequence)] = sequence, 1
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return {each.name: feeds[each.name] for each in session.get_inputs()}


def test_exits_and_head_are_those_of_transformers_in_a_padded_batch(result, sequences, reference):
    session, manifest = open_graph(result.folder), read_manifest(result.folder)
    layers = dict(zip(manifest.exit_layers, [one.output for one in manifest.exits], strict=True))
    assert tuple(layers) == result.report.layers == (1, 3)
    outputs = session.run(list(layers.values()), padded(sequences, session))
    for row, ids in enumerate(sequences):
        states, logits = reference(result.source, result.head, ids)
        for layer, output in zip(layers, outputs, strict=True):
            np.testing.assert_allclose(output[row, : len(ids)], states[layer], atol=1e-4)
        if manifest.head is not None:
            head = NumpyHead.read(result.folder, manifest.head, hidden_size=manifest.hidden_size)
            np.testing.assert_allclose(head.logits(outputs[-1][row, : len(ids)]), logits, atol=1e-4)


def test_inputs_and_outputs_have_named_dimensions(result):
    session = open_graph(result.folder)
    assert {tuple(each.shape) for each in session.get_inputs()} == {("batch", "sequence")}
    assert {each.type for each in session.get_inputs()} == {"tensor(int64)"}
    assert {tuple(each.shape[:2]) for each in session.get_outputs()} == {("batch", "sequence")}
    assert tuple(each.name for each in session.get_inputs()) == read_manifest(result.folder).inputs


def test_the_manifest_has_what_was_measured_and_the_hash_of_every_other_file(result):
    manifest = read_manifest(result.folder)
    check_files(result.folder, manifest)
    on_disk = {path.relative_to(result.folder).as_posix() for path in result.folder.rglob("*") if path.is_file()}
    assert set(manifest.files) == on_disk - {"vsr_manifest.json"}
    assert set(result.report.files) == on_disk
    assert result.report.manifest == result.folder / "vsr_manifest.json"
    assert 0 < manifest.tolerance.max_abs == result.report.max_abs <= 1e-4
    assert manifest.tolerance.texts == result.report.texts >= 10
    assert (manifest.quantization, result.report.cosine) == (None, None)
    assert {"torch", "transformers", "onnx"} <= set(manifest.versions)
    assert all(one.final_norm is (result.family == "modernbert") for one in manifest.exits)


def test_the_folder_holds_everything_but_the_weights_of_the_encoder(result):
    kept = {"config.json", "tokenizer.json", "tokenizer_config.json"}
    made = {"model.onnx", "model.onnx.data", "vsr_manifest.json"}
    head = {"head.safetensors"} if result.head != "embedding" else set()
    assert set(result.report.files) == kept | made | head
    assert [path.name for path in result.folder.parent.iterdir() if path.name.startswith(".")] == []


def test_the_graph_says_nothing_of_the_machine_it_was_made_on(result):
    content = (result.folder / "model.onnx").read_bytes()
    assert b"site-packages" not in content
    assert b"/transformers/" not in content


def test_the_steps_are_told(result):
    assert [step.split()[0] for step in result.steps] == ["reading", "tracing", "comparing", "writing"]


@pytest.mark.parametrize("layer", [None, 1])
def test_a_runtime_answers_from_the_folder(exported, reference, layer):
    result = exported("modernbert", "sequence")
    text = "the law of the sea"
    with Runtime({"catalog": {"m": {"source": str(result.folder)}}}) as runtime:
        answer = runtime.classify(text, model="onnx:m", layer=layer, logits=True)
    ids = _ids(result, text)
    states, logits = reference(result.source, "sequence", ids)
    if layer is not None:
        manifest = read_manifest(result.folder)
        head = NumpyHead.read(result.folder, manifest.head, hidden_size=manifest.hidden_size)
        logits = head.logits(states[layer])
    np.testing.assert_allclose(answer.results[0].logits, logits, atol=1e-4)
    labels = json.loads((result.source / "config.json").read_text())["id2label"]
    assert answer.results[0].label == labels[str(int(np.argmax(logits)))]


def test_a_quantised_export_is_an_artifact_of_its_own_with_its_cosine(exported):
    result = exported("bert", "embedding", "int8")
    manifest = read_manifest(result.folder)
    assert manifest.quantization == "int8-dynamic"
    assert 0.995 <= result.report.cosine == manifest.tolerance.cosine < 1
    assert manifest.tolerance.max_abs == result.report.max_abs > 1e-4
    assert "model_int8.onnx" in result.report.files
    assert "model.onnx" not in result.report.files
    assert result.steps[-3:-1] == ["quantising to 8 bits", "comparing the quantised graph with the original"]
    with Runtime({"catalog": {"m": {"source": str(result.folder)}}}) as runtime:
        (info,) = [info for info in runtime.models() if info.backend_id.backend == "onnx"]
        assert info.artifact is Artifact.QUANTIZED
        assert np.isfinite(runtime.embed("hello", model="onnx:m").vectors).all()


def _ids(result, text):
    from tokenizers import Tokenizer

    return np.asarray(Tokenizer.from_file(str(result.source / "tokenizer.json")).encode(text).ids, np.int64)
