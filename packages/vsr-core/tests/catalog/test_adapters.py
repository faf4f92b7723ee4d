"""``adapter_config.json`` is read as PEFT reads it, and what changes the mathematics otherwise is refused by name."""

import math
from pathlib import Path

import pytest
from vsr_core.catalog.adapters import AdapterConfig
from vsr_core.catalog.documents import Document
from vsr_core.errors import CheckpointError

PLAIN = {
    "peft_type": "LORA",
    "task_type": "SEQ_CLS",
    "r": 4,
    "lora_alpha": 8,
    "target_modules": ["query"],
    "bias": "none",
    "lora_dropout": 0.1,
    "init_lora_weights": True,
    "loftq_config": {},
    "megatron_core": "megatron.core",
    "use_dora": False,
    "peft_version": "0.21.2",
}


def read(**changes):
    return AdapterConfig.read(Document(Path("adapter_config.json"), PLAIN | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"peft_type": "IA3"}, "peft_type 'IA3' is not supported, only 'LORA'"),
        ({"r": 0}, "'r' must be a whole number above zero"),
        ({"r": True}, "'r' must be a whole number above zero"),
        ({"lora_alpha": None}, "'lora_alpha' must be a number above zero"),
        ({"lora_alpha": float("inf")}, "'lora_alpha' must be a number above zero"),
        ({"rank_pattern": {"query": 0}}, "'rank_pattern' must be an object of whole numbers"),
        ({"alpha_pattern": {"(": 1}}, "'alpha_pattern': '(' is no regular expression"),
        ({"target_modules": []}, "'target_modules' names no module"),
        ({"target_modules": "("}, "'target_modules': '(' is no regular expression"),
        ({"target_modules": [1]}, "'target_modules' must be a list of names"),
        ({"target_modules": ".*query", "layers_to_transform": [0]}, "'layers_to_transform' does not go with"),
        ({"layers_to_transform": ["a"]}, "'layers_to_transform' must be layer numbers"),
        ({"layers_pattern": "layer"}, "'layers_pattern' does not go without 'layers_to_transform'"),
        ({"modules_to_save": ["embeddings"]}, "modules_to_save has 'embeddings', which is no part of a head"),
        ({"task_type": "SEQ_2_SEQ_LM"}, "task_type 'SEQ_2_SEQ_LM' is none of"),
        ({"bias": "all"}, "bias='all' replaces biases"),
        ({"bias": "lora_only"}, "bias='lora_only' replaces biases"),
        ({"lora_bias": True}, "lora_bias=True adds a bias"),
        ({"use_dora": True}, "use_dora=True scales the base's own weights (DoRA)"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out=True"),
        ({"init_lora_weights": "pissa_niter_4"}, "init_lora_weights='pissa_niter_4' starts from changed base weights"),
        ({"init_lora_weights": "olora"}, "init_lora_weights='olora'"),
        ({"layer_replication": [[0, 2]]}, "layer_replication=[[0, 2]] adds layers"),
        ({"target_parameters": ["a"]}, "target_parameters=['a']"),
        ({"trainable_token_indices": [1]}, "trainable_token_indices=[1] changes the token embedding"),
        ({"alora_invocation_tokens": [1]}, "alora_invocation_tokens=[1]"),
        ({"from_the_future": 3}, "from_the_future=3 is a setting that is not known here"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(changes, said):
    with pytest.raises(CheckpointError) as caught:
        read(**changes)
    assert said in caught.value.message
    assert all(problem.startswith("adapter_config.json: ") for problem in caught.value.problems)


def test_every_refusal_is_told_at_once():
    with pytest.raises(CheckpointError) as caught:
        read(r=0, use_dora=True, bias="all")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"init_lora_weights": "gaussian"},
        {"init_lora_weights": "eva", "eva_config": {"rho": 2}},
        {"from_the_future": None},
        {"lora_dropout": 0.5, "inference_mode": True, "auto_mapping": {"a": "b"}},
    ],
)
def test_what_changes_nothing_is_taken(changes):
    assert read(**changes).rank == 4


def test_the_scale_goes_by_the_rank_that_a_module_has():
    plain = read(rank_pattern={"value": 2, "query": 9}, alpha_pattern={"layer.0.value": 3})
    assert (plain.rank_of("layer.0.value"), plain.rank_of("layer.0.key")) == (2, 4)
    assert (plain.scale_of("layer.0.value"), plain.scale_of("layer.1.value")) == (1.5, 4.0)
    root = read(rank_pattern={"value": 2}, use_rslora=True)
    assert (root.scale_of("layer.0.value"), root.scale_of("layer.0.key")) == (8 / math.sqrt(2), 4.0)


def test_the_classifier_is_saved_with_every_classifier_and_is_never_a_target():
    assert read().saves("classifier")
    assert not read(target_modules=["dense"]).changes("classifier.dense")
    assert not read(task_type="FEATURE_EXTRACTION").saves("classifier")


def test_layers_are_counted_as_peft_does():
    config = read(target_modules=["query"], layers_to_transform=[1])
    assert [config.changes(f"bert.encoder.layer.{index}.attention.self.query") for index in range(3)] == [
        False,
        True,
        False,
    ]
    assert not config.changes("pooler.query")
