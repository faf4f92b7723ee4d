from __future__ import annotations

import numpy as np
import pytest
from vsr_core.catalog import inspect_checkpoint
from vsr_core.contract import DenseSpec, PoolingSpec
from vsr_core.errors import CheckpointError

ST = "sentence_transformers.models."


@pytest.mark.parametrize(
    ("config", "modes"),
    [
        ({"word_embedding_dimension": 8, "pooling_mode_cls_token": True}, ("cls",)),
        (
            {"word_embedding_dimension": 8, "pooling_mode_lasttoken": True, "pooling_mode_max_tokens": True},
            ("max", "last"),
        ),
        (
            {"word_embedding_dimension": 8, "pooling_mode_mean_sqrt_len_tokens": True, "pooling_mode_cls_token": False},
            ("mean_sqrt_len",),
        ),
        ({"word_embedding_dimension": 8, "pooling_mode_weightedmean_tokens": True}, ("weighted_mean",)),
        ({"embedding_dimension": 8, "pooling_mode": "lasttoken"}, ("last",)),
        ({"embedding_dimension": 8, "pooling_mode": ["weightedmean", "cls"]}, ("weighted_mean", "cls")),
        ({"embedding_dimension": 8, "pooling_mode": "mean_sqrt_len_tokens"}, ("mean_sqrt_len",)),
    ],
)
def test_pooling_is_read_in_both_dialects(config, modes, sentence, write, families):
    facts = inspect_checkpoint(write(sentence | {"1_Pooling/config.json": config}), families)

    assert facts.refusals == ()
    assert facts.pooling == PoolingSpec(modes=modes)
    assert facts.native_dimensions == 8 * len(modes)


def test_prompt_tokens_may_be_left_out_of_the_pool(sentence, write, families):
    sentence["1_Pooling/config.json"] |= {"include_prompt": False}

    assert inspect_checkpoint(write(sentence), families).pooling == PoolingSpec(modes=("mean",), include_prompt=False)


def test_a_pooling_that_states_no_mode_leaves_it_open(sentence, write, families):
    facts = inspect_checkpoint(write(sentence | {"1_Pooling/config.json": {"word_embedding_dimension": 8}}), families)

    assert facts.pooling is None
    assert facts.refusals == ()


@pytest.mark.parametrize("config", [{"pooling_mode": "attention"}, {"pooling_mode_attention_tokens": True}])
def test_an_unknown_pooling_is_refused(config, sentence, write, families):
    facts = inspect_checkpoint(write(sentence | {"1_Pooling/config.json": config}), families)

    assert "attention" in facts.refusals[0]


def test_a_pooling_of_another_width_is_refused(sentence, write, families):
    sentence["1_Pooling/config.json"]["word_embedding_dimension"] = 16

    assert inspect_checkpoint(write(sentence), families).refusals == (
        "the pooling expects 16 features, the model gives 8",
    )


def dense(sentence, *, in_features=8, out_features=3, **config):
    """The sentence model with a dense layer between pooling and normalisation."""
    pooling, normalize = sentence["modules.json"][1:]
    return sentence | {
        "modules.json": [
            sentence["modules.json"][0],
            pooling,
            {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.base.modules.dense.Dense"},
            normalize,
        ],
        "2_Dense/config.json": {"in_features": in_features, "out_features": out_features, **config},
        "2_Dense/model.safetensors": {
            "linear.weight": np.ones((out_features, in_features), np.float32),
            "linear.bias": np.ones(out_features, np.float32),
        },
    }


def test_dense_layers_decide_the_native_width(sentence, write, families):
    activation = "torch.nn.modules.linear.Identity"

    facts = inspect_checkpoint(write(dense(sentence, activation_function=activation)), families)

    assert facts.refusals == ()
    assert facts.dense == (
        DenseSpec(path="2_Dense/model.safetensors", in_features=8, out_features=3, activation="identity"),
    )
    assert facts.native_dimensions == 3
    assert facts.normalize is True
    assert {"2_Dense/config.json", "2_Dense/model.safetensors"} <= set(facts.files)


def test_a_dense_layer_without_an_activation_has_tanh(sentence, write, families):
    assert inspect_checkpoint(write(dense(sentence)), families).dense[0].activation == "tanh"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"activation_function": "my_package.Evil"}, "the activation 'my_package.Evil' is not supported"),
        ({"use_residual": True}, "a residual connection is not supported"),
        ({"module_input_name": "token_embeddings"}, "anything but the sentence embedding"),
        ({"in_features": 5}, "expects 5 features and is given 8"),
    ],
)
def test_a_dense_layer_that_cannot_be_honoured_is_refused(config, reason, sentence, write, families):
    refusals = inspect_checkpoint(write(dense(sentence, **config)), families).refusals

    assert reason in "\n".join(refusals)


def test_a_pickled_dense_layer_is_refused(sentence, write, families):
    files = dense(sentence)
    files["2_Dense/pytorch_model.bin"] = b"\x80\x04."
    del files["2_Dense/model.safetensors"]

    assert "pickled weights are refused" in inspect_checkpoint(write(files), families).refusals[0]


def test_dense_weights_of_another_shape_are_refused(sentence, write, families):
    files = dense(sentence)
    files["2_Dense/model.safetensors"] = {"linear.weight": np.ones((3, 3), np.float32)}

    with pytest.raises(CheckpointError, match=r"not those its config\.json describes"):
        inspect_checkpoint(write(files), families)


@pytest.mark.parametrize("kind", [ST + "LayerNorm", ST + "WordWeights", "custom_st.Transformer", None])
def test_a_module_of_an_unknown_type_is_refused_by_name(kind, sentence, write, families):
    sentence["modules.json"][2] = {"idx": 2, "name": "2", "path": "2_X", "type": kind}

    assert repr(kind) in inspect_checkpoint(write(sentence), families).refusals[0]


def test_modules_in_another_order_are_refused(sentence, write, families):
    sentence["modules.json"][1:] = reversed(sentence["modules.json"][1:])

    assert (
        "Transformer > Normalize > Pooling is not supported"
        in inspect_checkpoint(write(sentence), families).refusals[0]
    )


@pytest.mark.parametrize("place", ["../1_Pooling", "/1_Pooling"])
def test_a_module_outside_the_folder_is_refused(place, sentence, write, families):
    sentence["modules.json"][1]["path"] = place

    with pytest.raises(CheckpointError, match=r"modules\.json: the path .* leaves the model's folder"):
        inspect_checkpoint(write(sentence), families)


def test_a_module_without_its_folder_is_refused(sentence, write, families):
    del sentence["1_Pooling/config.json"]

    with pytest.raises(CheckpointError, match=r"1_Pooling: modules\.json names it"):
        inspect_checkpoint(write(sentence), families)


def test_the_transformer_may_be_in_a_folder_of_its_own(sentence, write, families):
    sentence["modules.json"][0]["path"] = "0_Transformer"
    for name in ("config.json", "model.safetensors", "sentence_bert_config.json"):
        sentence[f"0_Transformer/{name}"] = sentence.pop(name)

    facts = inspect_checkpoint(write(sentence), families)

    assert (facts.family, facts.weights, facts.max_tokens) == ("bert", ("0_Transformer/model.safetensors",), 32)
    assert "0_Transformer/config.json" in facts.files


def test_prompts_similarity_and_lowercasing_are_read(sentence, write, families):
    sentence["sentence_bert_config.json"]["do_lower_case"] = True
    sentence["config_sentence_transformers.json"] = {
        "prompts": {"query": "query: ", "document": ""},
        "default_prompt_name": "query",
        "similarity_fn_name": "dot",
        "matryoshka_dims": [4, 2],
    }

    facts = inspect_checkpoint(write(sentence), families)

    assert facts.prompts == {"query": "query: ", "document": ""}
    assert (facts.default_prompt, facts.similarity, facts.lowercase) == ("query", "dot", True)
    assert facts.matryoshka == (2, 4)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"default_prompt_name": "query"}, "'query', which is none of its prompts"),
        ({"similarity_fn_name": "hamming"}, "'hamming' is not supported"),
        ({"model_type": "SparseEncoder"}, "'SparseEncoder' are not supported"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(settings, reason, sentence, write, families):
    sentence["config_sentence_transformers.json"] = settings

    assert reason in inspect_checkpoint(write(sentence), families).refusals[0]


def test_a_transformer_task_other_than_features_is_refused(sentence, write, families):
    sentence["sentence_bert_config.json"]["transformer_task"] = "fill-mask"

    assert "'fill-mask' is not supported" in inspect_checkpoint(write(sentence), families).refusals[0]
