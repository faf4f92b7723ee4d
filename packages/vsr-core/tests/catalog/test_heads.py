from __future__ import annotations

import pytest
from vsr_core.catalog import inspect_checkpoint
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Capability


def head(bert, names, **config):
    """The configuration of a sequence classifier with these labels."""
    labels = {str(index): name for index, name in enumerate(names)}
    return bert | {"architectures": ["BertForSequenceClassification"], "id2label": labels, **config}


def test_labels_are_sorted_as_numbers(bert, classifier, write, families):
    names = [f"name{index}" for index in range(12)]
    config = head(bert, names)
    config["id2label"] = dict(sorted(config["id2label"].items(), key=lambda item: item[1], reverse=True))

    facts = inspect_checkpoint(write({"config.json": config, "model.safetensors": classifier(12)}), families)

    assert facts.labels == tuple(names)
    assert (facts.capabilities, facts.label_count) == ((Capability.SEQUENCE_CLASSIFICATION,), 12)


def test_placeholders_are_no_labels(bert, classifier, write, families):
    config = head(bert, ["LABEL_0", "LABEL_1"])

    facts = inspect_checkpoint(write({"config.json": config, "model.safetensors": classifier(2)}), families)

    assert (facts.labels, facts.label_count) == (None, 2)


def test_a_label_map_beside_the_weights_names_what_the_config_does_not(bert, classifier, write, families):
    files = {
        "config.json": head(bert, ["LABEL_0", "LABEL_1"]),
        "model.safetensors": classifier(2),
        "jailbreak_type_mapping.json": {"label_to_idx": {"benign": 0, "jailbreak": 1}},
    }

    facts = inspect_checkpoint(write(files), families)

    assert facts.labels == ("benign", "jailbreak")
    assert "jailbreak_type_mapping.json" in facts.files


def test_label_maps_that_disagree_or_do_not_fit_are_refused(bert, classifier, write, families):
    files = {
        "config.json": head(bert, ["LABEL_0", "LABEL_1"]),
        "model.safetensors": classifier(2),
        "a_mapping.json": {"label_to_idx": {"x": 0, "y": 1, "z": 2}},
    }

    assert "3 labels, the head has 2" in inspect_checkpoint(write(files, "one"), families).refusals[0]
    files["b_mapping.json"] = {"label_to_idx": {"x": 0, "y": 1}}
    assert "disagree on the labels" in inspect_checkpoint(write(files, "two"), families).refusals[0]


@pytest.mark.parametrize(
    "labels", [{"0": "a", "2": "b"}, {"1": "a", "2": "b"}, {"0": "a", "x": "b"}, {"0": "a", "1": "a"}]
)
def test_labels_that_are_not_numbered_from_zero_without_gaps_are_refused(labels, bert, classifier, write, families):
    config = head(bert, []) | {"id2label": labels}

    with pytest.raises(CheckpointError, match=r"config\.json"):
        inspect_checkpoint(write({"config.json": config, "model.safetensors": classifier(2)}), families)


def test_labels_have_to_be_as_many_as_the_head_has_outputs(bert, classifier, write, families):
    folder = write({"config.json": head(bert, ["a", "b", "c"]), "model.safetensors": classifier(2)})

    assert inspect_checkpoint(folder, families).refusals == ("config.json has 3 labels, the head in the weights has 2",)


@pytest.mark.parametrize(
    ("config", "count", "activation"),
    [
        ({}, 3, "softmax"),
        ({"problem_type": "single_label_classification"}, 3, "softmax"),
        ({"problem_type": "multi_label_classification"}, 3, "sigmoid"),
        ({"problem_type": "regression"}, 3, "none"),
        ({}, 1, "sigmoid"),
        ({"problem_type": "regression"}, 1, "none"),
    ],
)
def test_the_activation_follows_the_problem_type(config, count, activation, bert, classifier, write, families):
    named = head(bert, [f"l{index}" for index in range(count)], **config)

    facts = inspect_checkpoint(write({"config.json": named, "model.safetensors": classifier(count)}), families)

    assert facts.activation == activation
    assert facts.capabilities == (Capability.SEQUENCE_CLASSIFICATION,)


@pytest.mark.parametrize(
    ("config", "activation"),
    [
        ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, "none"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, "sigmoid"),
    ],
)
def test_a_cross_encoder_with_one_label_reranks(config, activation, bert, classifier, write, families):
    named = head(bert, ["LABEL_0"], **config)

    facts = inspect_checkpoint(write({"config.json": named, "model.safetensors": classifier(1)}), families)

    assert (facts.capabilities, facts.activation) == ((Capability.RERANKING,), activation)


def test_a_cross_encoder_of_the_newer_form_is_known_by_its_settings(bert, classifier, write, families):
    files = {
        "config.json": head(bert, ["LABEL_0"]),
        "model.safetensors": classifier(1),
        "modules.json": [{"idx": 0, "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}],
        "sentence_bert_config.json": {"transformer_task": "sequence-classification"},
        "config_sentence_transformers.json": {
            "model_type": "CrossEncoder",
            "activation_fn": "torch.nn.modules.linear.Identity",
        },
    }

    facts = inspect_checkpoint(write(files), families)

    assert (facts.capabilities, facts.activation, facts.refusals) == ((Capability.RERANKING,), "none", ())
    assert facts.normalize is None


def test_a_cross_encoder_with_an_activation_of_its_own_is_refused(bert, classifier, write, families):
    named = head(bert, ["LABEL_0"], sbert_ce_default_activation_function="my_code.Scale")

    facts = inspect_checkpoint(write({"config.json": named, "model.safetensors": classifier(1)}), families)

    assert "'my_code.Scale' is not supported" in facts.refusals[0]


def test_the_labels_of_inference_make_a_pair_classifier(bert, classifier, write, families):
    named = head(bert, ["Entailment", "neutral", "contradiction"])

    facts = inspect_checkpoint(write({"config.json": named, "model.safetensors": classifier(3)}), families)

    assert facts.capabilities == (Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION)


def test_a_token_classifier_takes_the_softmax_of_each_token(bert, classifier, write, families):
    named = head(bert, ["O", "B-PERSON", "I-PERSON"]) | {"architectures": ["BertForTokenClassification"]}

    facts = inspect_checkpoint(write({"config.json": named, "model.safetensors": classifier(3)}), families)

    assert (facts.capabilities, facts.activation) == ((Capability.TOKEN_CLASSIFICATION,), "softmax")
