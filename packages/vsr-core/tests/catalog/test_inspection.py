from __future__ import annotations

import numpy as np
import pytest
from vsr_core.catalog import inspect_checkpoint
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
    described = {"peft_type": "LORA", "task_type": "SEQ_CLS", "base_model_name_or_path": "org/base", "r": 4, **config}
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
    assert (facts.base_model, facts.family) == ("org/base", None)


def test_an_adapter_has_its_labels_from_a_map_beside_it(write, families):
    files = adapter() | {"label_mapping.json": {"label2id": {"benign": 0, "jailbreak": 1}}}

    facts = inspect_checkpoint(write(files), families)

    assert (facts.labels, facts.label_count) == (("benign", "jailbreak"), 2)


def test_an_adapter_that_is_no_lora_is_refused(write, families):
    facts = inspect_checkpoint(write(adapter(peft_type="IA3")), families)

    assert "peft_type 'IA3' is not supported" in facts.refusals[0]
