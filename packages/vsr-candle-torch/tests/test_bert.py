"""The packed forward of BERT and RoBERTa agrees with transformers, layer by layer, alone and in any company."""

import json

import numpy as np
import pytest
import torch
from vsr_candle_torch.bert import BertConfig
from vsr_core.errors import CheckpointError
from vsr_core.testing import BertShape, write_bert


@pytest.mark.parametrize("family", ["bert", "minilm", "roberta", "xlm_roberta"])
def test_every_layer_is_that_of_the_reference(written, load, hidden, sequences, reference, family):
    network = load(written(family))
    layers = range(1, network.layers + 1)
    ours = hidden(network, sequences, layers)
    for index, ids in enumerate(sequences):
        theirs = reference(written(family), ids)
        for layer in layers:
            np.testing.assert_allclose(ours[layer][index], theirs[layer], atol=5e-5)


def test_a_result_does_not_depend_on_its_neighbours_or_their_order(load, hidden, sequences):
    network = load()
    together = hidden(network, sequences, {3})[3]
    for index, ids in enumerate(sequences):
        np.testing.assert_allclose(hidden(network, [ids], {3})[3][0], together[index], atol=1e-5)
    backwards = hidden(network, sequences[::-1], {3})[3][::-1]
    for one, other in zip(together, backwards, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_attention_is_peaked_enough_for_a_mistake_to_show(folder, sequences, reference):
    changed = sequences[4].copy()
    changed[0] += 1
    moved = np.abs(reference(folder, sequences[4])[3][1:] - reference(folder, changed)[3][1:]).max()
    assert moved > 0.01


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu", "silu"])
def test_each_activation_is_that_of_the_reference(tmp_path, load, hidden, sequences, reference, activation):
    folder = write_bert(tmp_path / "m", BertShape(layers=1), config={"hidden_act": activation})
    (ours,) = hidden(load(folder), [sequences[2]], {1})[1]
    np.testing.assert_allclose(ours, reference(folder, sequences[2])[1], atol=2e-5)


def test_bfloat16_stays_close_to_float32(load, hidden, sequences):
    full, half = (hidden(load(dtype=dtype), sequences, {3})[3] for dtype in (torch.float32, torch.bfloat16))
    for one, other in zip(full, half, strict=True):
        one, other = one.mean(0), other.mean(0)
        assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.99


def test_type_ids_are_used_where_the_model_has_types(load, written, hidden, sequences):
    ids = [sequences[0]]
    for network, moves in ((load(), True), (load(written("roberta")), False)):
        last = network.layers
        zeros, ones = (hidden(network, ids, {last}, types=np.full(7, kind, np.int32))[last][0] for kind in (0, 1))
        assert bool(np.abs(zeros - ones).max() > 0.01) is moves


def test_a_padding_token_inside_a_text_has_the_position_the_reference_gives_it(written, load, hidden, reference):
    ids = np.array([5, 20, 1, 1, 30, 31], np.int32)  # 1 is the padding id of RoBERTa
    network = load(written("roberta"))
    other = np.array([9, 9], np.int32)
    ours = hidden(network, [other, ids], {network.layers})[network.layers][1]
    np.testing.assert_allclose(ours, reference(written("roberta"), ids)[network.layers], atol=5e-5)


def test_a_padding_id_that_leaves_no_position_is_refused(written):
    config = json.loads((written("roberta") / "config.json").read_text()) | {"pad_token_id": 9999}
    with pytest.raises(CheckpointError, match="pad_token_id 9999 leaves none of"):
        BertConfig.read(config, "config.json", roberta=True)


def test_a_long_batch_goes_through_the_wide_layers_in_blocks(load, hidden, sequences):
    network = load()
    alone = hidden(network, [sequences[4]], {3})[3][0]
    many = hidden(network, [sequences[4]] * 70, {3})[3]  # 2,310 rows
    assert max(np.abs(each - alone).max() for each in many) < 1e-5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "swish"}, "hidden_act 'swish' is not computed here"),
        ({"position_embedding_type": "relative_key"}, "absolute position embeddings"),
        ({"is_decoder": True}, "a decoder is no encoder"),
        ({"num_attention_heads": 5}, "no multiple of 5 heads"),
        ({"num_hidden_layers": None}, "num_hidden_layers must be a positive whole number"),
        ({"layer_norm_eps": "x"}, "layer_norm_eps must be a number"),
        ({"vocab_size": True}, "vocab_size must be a positive whole number"),
    ],
)
def test_a_configuration_that_is_not_computed_here_is_refused(folder, change, message):
    config = json.loads((folder / "config.json").read_text()) | change
    with pytest.raises(CheckpointError, match=message):
        BertConfig.read(config, "config.json")
