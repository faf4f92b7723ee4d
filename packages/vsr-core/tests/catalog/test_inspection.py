from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from vsr_core.catalog import ExitLayer, ExportManifest, HeadLayout, inspect_checkpoint, write_manifest
from vsr_core.contract import FamilyDescriptor, PoolingSpec
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Artifact, Capability, Modality


def test_the_packaged_minilm_is_understood_from_its_files(minilm, families):
    facts = inspect_checkpoint(minilm, families)

    assert facts.refusals == ()
    assert (facts.family, facts.architecture, facts.artifact) == ("minilm", "BertModel", Artifact.FULL)
    assert (facts.capabilities, facts.modality) == ((Capability.EMBEDDING,), Modality.TEXT)
    assert (facts.hidden_size, facts.layers, facts.native_dimensions) == (384, 6, 384)
    assert (facts.max_tokens, facts.advertised_max_tokens) == (256, 512)
    assert (facts.pooling, facts.normalize) == (PoolingSpec(modes=("mean",)), True)
    assert (facts.stored_dtype, facts.weights) == ("float32", ("model.safetensors",))
    assert "README.md" not in facts.files
    assert {"1_Pooling/config.json", "tokenizer.json", "vocab.txt"} <= set(facts.files)


@pytest.mark.parametrize(
    ("model_type", "config", "tokenizer", "effective", "advertised"),
    [
        ("bert", {"max_position_embeddings": 512}, {"model_max_length": 128}, 128, 512),
        ("bert", {"max_position_embeddings": 512}, {"model_max_length": int(1e30)}, 512, 512),
        ("bert", {"max_position_embeddings": 512}, {"model_max_length": 10**30}, 512, 512),
        ("roberta", {"max_position_embeddings": 514, "pad_token_id": 1}, {}, 512, 512),
        ("xlm-roberta", {"max_position_embeddings": 8194, "pad_token_id": 1}, {"model_max_length": 8192}, 8192, 8192),
        ("roberta", {"max_position_embeddings": 514, "pad_token_id": None}, {}, 512, 512),
        ("bert", {"max_position_embeddings": None}, {}, None, None),
    ],
)
def test_the_shortest_claim_is_the_limit(
    model_type, config, tokenizer, effective, advertised, bert, weights, write, families
):
    files = {
        "config.json": bert | {"model_type": model_type, "architectures": []} | config,
        "tokenizer_config.json": tokenizer,
        "model.safetensors": weights,
    }

    facts = inspect_checkpoint(write(files), families)

    assert (facts.max_tokens, facts.advertised_max_tokens) == (effective, advertised)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_code_from_the_repository_is_refused(name, bert, weights, write, families):
    files = {"config.json": bert, "tokenizer_config.json": {}, "model.safetensors": weights}
    files[name] = files[name] | {"auto_map": {"AutoModel": "modeling.Custom"}}

    assert f"{name}: 'auto_map' asks for code" in inspect_checkpoint(write(files), families).refusals[0]


def test_a_snapshot_whose_files_are_links_to_the_blobs_beside_it_is_read(bert, sentence, write, families):
    blobs = write(sentence, "blobs")
    snapshot = blobs.parent / "snapshots" / "0123"
    for name in sentence:
        (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / name).symlink_to(blobs / name)

    assert inspect_checkpoint(snapshot, families) == inspect_checkpoint(blobs, families)


def test_malformed_json_is_refused_by_name(weights, write, families):
    with pytest.raises(CheckpointError, match=r"config\.json: not JSON"):
        inspect_checkpoint(write({"config.json": "{'a': 1}", "model.safetensors": weights}), families)


def test_a_path_that_leads_nowhere_is_refused(tmp_path, families):
    with pytest.raises(CheckpointError, match="no such file"):
        inspect_checkpoint(tmp_path / "missing", families)


def test_an_architecture_its_family_does_not_list_is_refused(bert, weights, write, families):
    config = bert | {"architectures": ["BertForQuestionAnswering"]}

    facts = inspect_checkpoint(write({"config.json": config, "model.safetensors": weights}), families)

    assert facts.refusals == ("the architecture 'BertForQuestionAnswering' is none that family 'bert' lists",)


def test_a_family_without_a_list_of_architectures_goes_by_their_names(bert, classifier, write, families):
    families["new"] = FamilyDescriptor(name="new", contract="1.0", model_types=("new",))
    config = bert | {"model_type": "new", "architectures": ["NewForTokenClassification"]}

    facts = inspect_checkpoint(write({"config.json": config, "model.safetensors": classifier(2)}), families)

    assert (facts.family, facts.capabilities) == ("new", (Capability.TOKEN_CLASSIFICATION,))


def test_an_unknown_family_leaves_what_it_is_for_open(bert, weights, write, families):
    config = bert | {"model_type": "t5", "architectures": ["T5Model"]}

    facts = inspect_checkpoint(write({"config.json": config, "model.safetensors": weights}), families)

    assert (facts.model_type, facts.family, facts.capabilities, facts.servable) == ("t5", None, (), None)


def test_a_causal_model_in_a_sentence_transformers_folder_embeds(sentence, write, families):
    sentence["config.json"] |= {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}

    facts = inspect_checkpoint(write(sentence), families)

    assert (facts.family, facts.capabilities) == ("qwen3", (Capability.EMBEDDING,))


def test_the_text_encoder_of_a_nested_config_is_read(weights, write, families):
    config = {
        "model_type": "siglip",
        "architectures": ["SiglipModel"],
        "text_config": {"hidden_size": 768, "num_hidden_layers": 12, "max_position_embeddings": 64},
        "vision_config": {"hidden_size": 768},
    }

    facts = inspect_checkpoint(write({"config.json": config, "model.safetensors": weights}), families)

    assert (facts.capabilities, facts.modality) == ((Capability.MULTIMODAL_EMBEDDING,), Modality.IMAGE)
    assert (facts.hidden_size, facts.layers, facts.max_tokens) == (768, 12, 64)


def adapter(**config):
    tensors = {
        "base_model.model.classifier.weight": np.ones((2, 8), np.float32),
        "base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight": np.ones((4, 8), np.float32),
    }
    plain = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["query"]}
    described = plain | {"task_type": "SEQ_CLS", "base_model_name_or_path": "org/base"} | config
    return {"adapter_config.json": described, "adapter_model.safetensors": tensors}


@pytest.mark.parametrize(
    ("task", "capability"),
    [
        ("SEQ_CLS", Capability.SEQUENCE_CLASSIFICATION),
        ("TOKEN_CLS", Capability.TOKEN_CLASSIFICATION),
        ("FEATURE_EXTRACTION", Capability.EMBEDDING),
        ("CAUSAL_LM", Capability.GENERATION),
    ],
)
def test_an_adapter_says_its_task(task, capability, write, families):
    facts = inspect_checkpoint(write(adapter(task_type=task)), families)

    assert (facts.artifact, facts.capabilities) == (Artifact.LORA_ADAPTER, (capability,))
    assert (facts.adapter.base_model, facts.family) == ("org/base", None)


def test_an_adapter_has_its_labels_from_a_map_beside_it(write, families):
    files = adapter() | {"label_mapping.json": {"label2id": {"benign": 0, "jailbreak": 1}}}

    facts = inspect_checkpoint(write(files), families)

    assert (facts.labels, facts.label_count) == (("benign", "jailbreak"), 2)


def test_labels_json_beside_an_adapter_is_its_label_map(write, families):
    facts = inspect_checkpoint(write(adapter() | {"labels.json": ["benign", "jailbreak"]}), families)
    assert facts.labels == ("benign", "jailbreak")
    assert "labels.json" in facts.files


def test_an_adapter_that_is_no_lora_is_refused(write, families):
    facts = inspect_checkpoint(write(adapter(peft_type="IA3")), families)

    assert "peft_type 'IA3' is not supported" in facts.refusals[0]


@pytest.fixture
def exported(write, bert):
    """Writes an export of a classifier of three labels, and gives its folder."""

    def make(**changes):
        config = bert | {
            "architectures": ["BertForSequenceClassification"],
            "id2label": {str(number): name for number, name in enumerate(("low", "mid", "high"))},
        }
        files = dict.fromkeys(("model.onnx", "model.onnx.data"), b"\x08")
        folder = write(
            {"config.json": config, "head.safetensors": {"classifier.bias": np.ones(3, np.float32)}, **files}
        )
        manifest = ExportManifest(
            family="bert",
            architecture="BertForSequenceClassification",
            capabilities=(Capability.SEQUENCE_CLASSIFICATION,),
            hidden_size=8,
            layers=4,
            exits=(ExitLayer(layer=2, output="hidden_2"), ExitLayer(layer=4, output="hidden_4")),
            max_tokens=32,
            inputs=("input_ids",),
            files=dict.fromkeys([*files, "head.safetensors"], "0" * 64),
            head=HeadLayout(kind="sequence", labels=3, pool="cls"),
        )
        write_manifest(folder, replace(manifest, **changes))
        return folder

    return make


def test_the_manifest_of_an_export_says_what_its_graph_gives(exported, families):
    facts = inspect_checkpoint(exported(), families)

    assert (facts.refusals, facts.artifact, facts.family) == ((), Artifact.ONNX, "bert")
    assert (facts.exit_layers, facts.max_tokens, facts.stored_dtype) == ((2, 4), 32, "float32")
    assert (facts.labels, facts.label_count, facts.activation) == (("low", "mid", "high"), 3, "softmax")
    assert facts.weights == ("model.onnx", "model.onnx.data")
    assert set(facts.files) == {"config.json", "vsr_manifest.json", "head.safetensors", *facts.weights}


def test_an_export_may_state_its_pooling_and_that_it_is_quantised(exported, families):
    pooling = PoolingSpec(modes=("max",))
    facts = inspect_checkpoint(exported(pooling=pooling, quantization="int8-dynamic"), families)

    assert (facts.artifact, facts.pooling) == (Artifact.QUANTIZED, pooling)


def test_files_of_two_exports_are_refused(exported, families, write):
    (refusal,) = inspect_checkpoint(exported(hidden_size=16), families).refusals
    assert refusal.startswith("vsr_manifest.json is of a model with hidden_size 16, config.json says 8")

    (refusal,) = inspect_checkpoint(exported(head=HeadLayout(kind="sequence", labels=2, pool="cls")), families).refusals
    assert "config.json has 3 labels, the head in the weights has 2" in refusal

    folder = exported()
    (folder / "model.onnx.data_2").write_bytes(b"1")
    (refusal,) = inspect_checkpoint(folder, families).refusals
    assert refusal.startswith("vsr_manifest.json does not list model.onnx.data_2: files of two exports are mixed")


@pytest.mark.parametrize("name", ["model.onnx.data", "head.safetensors"])
def test_a_file_that_an_export_has_lost_is_named(exported, families, name):
    folder = exported()
    (folder / name).unlink()
    (refusal,) = inspect_checkpoint(folder, families).refusals
    assert refusal.startswith(f"vsr_manifest.json lists {name}, which is missing: copy it too, or export")


def test_a_manifest_says_nothing_of_weights_that_are_no_graph(exported, families, classifier, write):
    folder = exported()
    write({"model.safetensors": classifier(3)})

    facts = inspect_checkpoint(folder, families)

    assert (facts.artifact, facts.exit_layers) == (Artifact.FULL, ())
    assert "vsr_manifest.json" not in facts.files


def test_a_graph_without_a_manifest_has_the_exits_it_has_files_for(bert, write, families):
    one = write({"config.json": bert, "model.onnx": b"\x08"}, "one")
    several = write(
        {"config.json": bert, "onnx/layer-2/model.onnx": b"\x08", "onnx/layer-4/model.onnx": b"\x08"}, "two"
    )
    shallow = write({"config.json": bert, "model_layer_2.onnx": b"\x08"}, "shallow")

    assert inspect_checkpoint(one, families).exit_layers == (4,)
    assert inspect_checkpoint(several, families).exit_layers == (2, 4)
    assert inspect_checkpoint(shallow, families).refusals == (
        "no graph is of the native depth, 4; there are graphs for 2",
    )
