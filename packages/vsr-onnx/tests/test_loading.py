"""What is loaded answers as the encoder does, and what cannot be is refused with the file and the way out."""

import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from safetensors.numpy import save_file
from vsr_core import Runtime
from vsr_core.catalog import ExitLayer, ExportManifest, ExportTolerance, HeadLayout, write_manifest
from vsr_core.errors import CheckpointError, InvalidInputError, LoadError, NonFiniteOutputError
from vsr_core.taxonomy import Capability, Feature

TEXTS = ["the river bank", "", "a", "the cat and the dog in the tree by the river", "one two three"]


def runtime(folders, *, options=None, **entry):
    folders = folders if isinstance(folders, dict) else {"m": folders}
    catalog = {name: {"source": str(folder), **entry} for name, folder in folders.items()}
    return Runtime({"catalog": catalog, "backends": {"onnx": options or {}}})


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def softmax(values):
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def manifest_of(folder, *, exits=(3,), head=None, capabilities=(Capability.EMBEDDING,), quantization=None):
    names = [name for name in ("model.onnx", "model.onnx.data", "head.safetensors") if (folder / name).is_file()]
    return ExportManifest(
        family="bert",
        architecture="BertModel",
        capabilities=capabilities,
        hidden_size=32,
        layers=3,
        exits=tuple(ExitLayer(layer=layer, output=f"hidden_{layer}") for layer in exits),
        max_tokens=64,
        inputs=("input_ids", "attention_mask", "token_type_ids"),
        head=head,
        quantization=quantization,
        tolerance=ExportTolerance(max_abs=0.02, texts=9, cosine=0.997),
        files={name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names},
    )


def test_vectors_are_those_of_the_encoder_alone_and_beside_others(exported, ids_of):
    folder, encoder = exported()
    expected = [unit(encoder.forward(ids_of(folder, text)).mean(0)) for text in TEXTS]
    with runtime(folder) as vsr:
        np.testing.assert_allclose(vsr.embed(TEXTS).vectors, expected, atol=1e-5)
        for text, vector in zip(TEXTS, expected, strict=True):
            np.testing.assert_allclose(vsr.embed(text).vectors[0], vector, atol=1e-5)


def test_a_classifier_answers_from_the_logits_of_its_graph(exported, ids_of):
    folder, encoder = exported("sequence")
    with runtime(folder) as vsr:
        for text, result in zip(TEXTS, vsr.classify(TEXTS).results, strict=True):
            found = softmax(encoder.classify(ids_of(folder, text)))
            np.testing.assert_allclose(list(result.distribution.values()), found, atol=1e-5)


def test_pairs_are_classified(exported, ids_of):
    folder, encoder = exported("nli")
    encoder.weights["types"][1] = encoder.weights["types"][0]  # the forward here knows of one type alone
    encoder.write(folder / "model.onnx", ("logits",))
    with runtime(folder) as vsr:
        (result,) = vsr.nli([("a cat", "the dog")]).results
        found = softmax(encoder.classify(ids_of(folder, "a cat", "the dog")))
        np.testing.assert_allclose(list(result.distribution.values()), found, atol=1e-5)


def test_tokens_are_tagged(exported, ids_of):
    folder, encoder = exported("token")
    with runtime(folder) as vsr:
        (result,) = vsr.tag(["the cat and the dog"], aggregation="none").results
        scores = softmax(encoder.classify(ids_of(folder, "the cat and the dog")))[1:-1].max(-1)
        assert result.spans
        assert all(np.abs(scores - span.score).min() < 1e-5 for span in result.spans)


def test_documents_are_reranked(exported, ids_of):
    folder, encoder = exported("reranker")
    encoder.weights["types"][1] = encoder.weights["types"][0]
    encoder.write(folder / "model.onnx", ("logits",))
    with runtime(folder) as vsr:
        found = vsr.rerank("a cat", ["the dog", "the cat"])
        logits = {
            n: encoder.classify(ids_of(folder, "a cat", text))[0] for n, text in enumerate(("the dog", "the cat"))
        }
        assert found.score_kind == "probability"
        for result in found.results:
            np.testing.assert_allclose(result.score, 1 / (1 + np.exp(-logits[result.index])), atol=1e-5)


def test_a_head_beside_the_graph_is_applied_in_numpy_at_every_exit(exported, ids_of):
    folder, encoder = exported("sequence", ("hidden_1", "hidden_3"))
    weight = np.random.default_rng(5).normal(size=(4, 32)).astype(np.float32)
    save_file({"classifier.weight": weight, "classifier.bias": np.ones(4, np.float32)}, folder / "head.safetensors")
    head = HeadLayout(kind="sequence", pool="cls", labels=4)
    capabilities = (Capability.SEQUENCE_CLASSIFICATION,)
    write_manifest(folder, manifest_of(folder, exits=(1, 3), head=head, capabilities=capabilities))
    with runtime(folder, layers=[1, 3]) as vsr:
        for layer in (1, 3):
            (result,) = vsr.classify("a cat", layer=layer).results
            found = softmax(encoder.forward(ids_of(folder, "a cat"), layer)[0] @ weight.T + 1)
            np.testing.assert_allclose(list(result.distribution.values()), found, atol=1e-5)


@pytest.mark.parametrize("form", ["manifest", "folders", "names"])
def test_layer_exits_are_those_of_the_encoder_and_others_are_refused(exported, ids_of, form):
    if form == "manifest":
        folder, encoder = exported(outputs=("hidden_1", "hidden_2", "hidden_3"), external=True)
        write_manifest(folder, manifest_of(folder, exits=(1, 2, 3)))
    else:
        file = "model.onnx" if form == "names" else "onnx/model.onnx"
        folder, encoder = exported(file=file, external=True)
        shallow = "model_layer_1.onnx" if form == "names" else "onnx/layer-1/model.onnx"
        encoder.write(folder / shallow, ("hidden_1",))
        model = onnx.load(folder / shallow)
        model.graph.node[-1].output[0] = model.graph.output[0].name = "last_hidden_state"
        onnx.save(model, folder / shallow)
    with runtime(folder, layers=[1, 3]) as vsr:
        for layer in (1, 3):
            found = vsr.embed(TEXTS, layer=layer)
            expected = [unit(encoder.forward(ids_of(folder, text), layer).mean(0)) for text in TEXTS]
            np.testing.assert_allclose(found.vectors, expected, atol=1e-5)
            assert found.envelope.layer == layer
        with pytest.raises(InvalidInputError, match="there are: 1, 3"):
            vsr.embed("a", layer=2)
        info = vsr.load("onnx:m")
        assert info.exit_layers == (1, 3)


def test_several_models_are_served_side_by_side(exported, ids_of):
    made = {f"m{seed}": exported(name=f"m{seed}", seed=seed) for seed in range(3)}
    with runtime({name: folder for name, (folder, _) in made.items()}) as vsr:
        for name, (folder, encoder) in made.items():
            expected = unit(encoder.forward(ids_of(folder, "a cat")).mean(0))
            np.testing.assert_allclose(vsr.embed("a cat", model=name).vectors[0], expected, atol=1e-5)


def test_what_was_loaded_is_told(exported):
    folder, _ = exported(external=True)
    with runtime(folder, options={"device": "prefer:migraphx"}) as vsr:
        info = vsr.load("onnx:m")
    assert (info.provider.requested, info.provider.actual) == ("prefer:migraphx", "CPUExecutionProvider")
    assert "no MIGraphXExecutionProvider" in info.provider.reason
    assert (info.device.actual, info.dtype.actual) == ("cpu", "float32")
    assert info.memory_bytes == sum((folder / name).stat().st_size for name in ("model.onnx", "model.onnx.data"))
    assert {state.feature for state in info.features if state.supported} >= {
        Feature.BATCHING,
        Feature.PROVIDER_SELECTION,
        Feature.UNLOAD,
    }


def test_a_required_device_that_is_not_there_fails(exported):
    folder, _ = exported()
    with (
        runtime(folder, options={"device": "require:migraphx"}) as vsr,
        pytest.raises(LoadError, match="'require:migraphx' is not to be had"),
    ):
        vsr.load("onnx:m")


def test_a_precision_the_graph_does_not_have_is_refused_or_told(exported):
    folder, _ = exported()
    with (
        runtime(folder, options={"precision": "require:bf16"}) as vsr,
        pytest.raises(LoadError, match=r"model\.onnx was exported in float32"),
    ):
        vsr.load("onnx:m")
    with runtime(folder, options={"precision": "prefer:bf16"}) as vsr:
        assert "exported in float32" in vsr.load("onnx:m").dtype.reason
    with runtime(folder, options={"precision": "fp32"}) as vsr:
        assert vsr.load("onnx:m").dtype.reason is None


def quantize(path):
    """Hold the token table in 8 bits; gives it as it is used."""
    model = onnx.load(path)
    (table,) = (weight for weight in model.graph.initializer if weight.name == "table")
    values = numpy_helper.to_array(table)
    scale = np.float32(np.abs(values).max() / 127)
    packed = np.rint(values / scale).astype(np.int8)
    model.graph.initializer.remove(table)
    model.graph.initializer.extend(
        [
            numpy_helper.from_array(packed, "packed"),
            numpy_helper.from_array(scale, "scale"),
            numpy_helper.from_array(np.int8(0), "zero8"),
        ]
    )
    node = onnx.helper.make_node("DequantizeLinear", ["packed", "scale", "zero8"], ["table"])
    model.graph.node.insert(0, node)
    onnx.save(model, path)
    return packed * scale


def test_a_quantized_graph_is_served_where_it_is_asked_for_and_says_how_far_it_is_off(exported, ids_of):
    folder, encoder = exported(outputs=("hidden_3",))
    encoder.weights["table"] = quantize(folder / "model.onnx")
    write_manifest(folder, manifest_of(folder, quantization="int8-dynamic"))
    with runtime(folder, artifact="quantized") as vsr:
        info = vsr.load("onnx:m")
        assert info.dtype.actual == "int8"
        assert "within 0.02 of its source on 9 texts, its vectors with a mean cosine of 0.9970" in info.dtype.reason
        (batching,) = (state for state in info.features if state.feature is Feature.BATCHING)
        assert not batching.supported
        expected = [unit(encoder.forward(ids_of(folder, text)).mean(0)) for text in TEXTS]
        np.testing.assert_allclose(vsr.embed(TEXTS).vectors, expected, atol=1e-5)


def test_a_quantized_graph_is_never_taken_for_the_model_itself(exported):
    folder, _ = exported()
    with (
        runtime(folder, artifact="quantized") as vsr,
        pytest.raises(CheckpointError, match="quantized"),
    ):
        vsr.embed("a")
    quantize(folder / "model.onnx")
    with (
        runtime(folder) as vsr,
        pytest.raises(CheckpointError, match=r"model\.onnx: holds weights of 8 bits or less.*'artifact: quantized'"),
    ):
        vsr.embed("a")


def test_missing_weights_beside_the_graph_are_named(exported):
    folder, _ = exported(external=True)
    (folder / "model.onnx.data").unlink()
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match=r"model\.onnx\.data: is missing"):
        vsr.embed("a")


def test_files_of_two_exports_are_refused(exported):
    folder, _ = exported(outputs=("hidden_3",), external=True)
    write_manifest(folder, manifest_of(folder))
    other, _ = exported(outputs=("hidden_3",), external=True, name="other", seed=1)
    shutil.copy(other / "model.onnx.data", folder / "model.onnx.data")
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match=r"model\.onnx\.data: its SHA-256 is"):
        vsr.embed("a")


def test_an_input_that_nobody_feeds_is_refused(exported):
    folder, _ = exported()
    model = onnx.load(folder / "model.onnx")
    model.graph.input.append(onnx.helper.make_tensor_value_info("pixels", 1, ["batch"]))
    model.graph.node[-1].input.append("pixels")
    model.graph.node[-1].op_type = "Sum"
    onnx.save(model, folder / "model.onnx")
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="pixels"):
        vsr.embed("a")


def test_a_graph_that_does_not_tell_the_texts_of_a_pair_apart_is_refused(exported):
    folder, _ = exported("nli")
    model = onnx.load(folder / "model.onnx")
    del model.graph.input[2]
    model.graph.node[1].op_type = "Identity"
    model.graph.node[1].CopyFrom(onnx.helper.make_node("Identity", ["words"], ["kinds"]))
    onnx.save(model, folder / "model.onnx")
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="token_type_ids"):
        vsr.nli([("a", "b")])


def test_labels_that_do_not_fit_the_head_are_refused(exported):
    folder, _ = exported("sequence")
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {"0": "yes", "1": "no"}
    config["label2id"] = {"yes": 0, "no": 1}
    (folder / "config.json").write_text(json.dumps(config))
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="gives 4 logits, and there are 2 labels"):
        vsr.classify("a")


def test_a_head_of_another_kind_is_refused(exported):
    folder, encoder = exported("sequence")
    encoder.per_token = True
    encoder.write(folder / "model.onnx", ("logits",))
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="logits for every token"):
        vsr.classify("a")


def test_a_tokenizer_of_another_vocabulary_is_refused(exported, small):
    folder, _ = exported()
    small(vocabulary=20).write(folder / "model.onnx")
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="20"):
        vsr.embed("a")


def test_a_graph_that_ignores_its_mask_is_refused(exported):
    folder, encoder = exported()
    encoder.masked = False
    encoder.write(folder / "model.onnx")
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="does not heed 'attention_mask'"):
        vsr.embed("a")


def test_a_graph_that_answers_nan_is_refused(exported):
    folder, encoder = exported()
    encoder.weights["w2"][3, 4] = np.nan
    encoder.write(folder / "model.onnx")
    with runtime(folder) as vsr, pytest.raises(NonFiniteOutputError, match="plain token ids"):
        vsr.embed("a")


def test_unloading_frees_what_was_loaded_and_loading_again_works(exported):
    folder, _ = exported()
    with runtime(folder) as vsr:
        before = vsr.embed("a cat").vectors
        vsr.unload("onnx:m")
        np.testing.assert_array_equal(vsr.embed("a cat").vectors, before)


def test_callers_from_many_threads_get_their_own_answers(exported, ids_of):
    folder, encoder = exported()
    expected = np.array([unit(encoder.forward(ids_of(folder, text)).mean(0)) for text in TEXTS])
    with runtime(folder, options={"threads": 2}) as vsr, ThreadPoolExecutor(8) as threads:

        def ask(number):
            indices = [(number + step) % len(TEXTS) for step in range(1 + number % 4)]
            return np.abs(vsr.embed([TEXTS[index] for index in indices]).vectors - expected[indices]).max()

        assert max(threads.map(ask, range(60))) < 1e-5
