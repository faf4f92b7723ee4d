"""The packed forward agrees with transformers, layer by layer, alone and in any company."""

import json

import numpy as np
import pytest
import torch
from vsr_candle_torch.bert import BertConfig
from vsr_core.errors import CheckpointError
from vsr_core.testing import BertShape, write_bert


def run(encoder, sequences, exits=(3,)):
    ids = torch.from_numpy(np.concatenate(sequences))
    offsets = torch.from_numpy(np.cumsum([0, *map(len, sequences)]))
    states = encoder.forward(ids, torch.zeros_like(ids), offsets, exits=frozenset(exits))
    return {layer: np.split(state.float().numpy(), offsets[1:-1].numpy()) for layer, state in states.items()}


def test_every_layer_is_that_of_the_reference(load, folder, sequences, reference):
    ours = run(load(), sequences, exits=(1, 2, 3))
    for index, ids in enumerate(sequences):
        theirs = reference(folder, ids)
        for layer in (1, 2, 3):
            np.testing.assert_allclose(ours[layer][index], theirs[layer], atol=2e-5)


def test_a_result_does_not_depend_on_its_neighbours_or_their_order(load, sequences):
    encoder = load()
    together = run(encoder, sequences)[3]
    for index, ids in enumerate(sequences):
        np.testing.assert_allclose(run(encoder, [ids])[3][0], together[index], atol=1e-5)
    backwards = run(encoder, sequences[::-1])[3][::-1]
    for one, other in zip(together, backwards, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_attention_is_peaked_enough_for_a_mistake_to_show(folder, sequences, reference):
    changed = sequences[4].copy()
    changed[0] += 1
    moved = np.abs(reference(folder, sequences[4])[3][1:] - reference(folder, changed)[3][1:]).max()
    assert moved > 0.01


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_each_activation_is_that_of_the_reference(tmp_path, load, sequences, reference, activation):
    folder = write_bert(tmp_path / "m", BertShape(layers=1), config={"hidden_act": activation})
    (ours,) = run(load(folder), [sequences[2]], exits=(1,))[1]
    np.testing.assert_allclose(ours, reference(folder, sequences[2])[1], atol=2e-5)


def test_bfloat16_stays_close_to_float32(load, sequences):
    full, half = (run(load(dtype=dtype), sequences)[3] for dtype in (torch.float32, torch.bfloat16))
    for one, other in zip(full, half, strict=True):
        one, other = one.mean(0), other.mean(0)
        assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.99


def test_type_ids_are_used(load, sequences):
    encoder = load()
    ids = torch.from_numpy(sequences[0])
    offsets = torch.tensor([0, len(ids)])
    zeros = encoder.forward(ids, torch.zeros_like(ids), offsets, exits={3})[3]
    ones = encoder.forward(ids, torch.ones_like(ids), offsets, exits={3})[3]
    assert (zeros - ones).abs().max() > 0.01


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
