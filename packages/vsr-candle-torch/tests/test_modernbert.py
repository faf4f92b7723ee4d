"""The packed forward of ModernBERT and mmBERT agrees with transformers, window, rotation, exits and all."""

import json

import numpy as np
import pytest
import torch
from vsr_candle_torch.modernbert import ModernBertConfig
from vsr_core.errors import CheckpointError
from vsr_core.local import BatchShape
from vsr_core.testing import EncoderShape

LONG = EncoderShape(positions=600, layers=4)
YARN = {"rope_type": "yarn", "rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": 150}


@pytest.fixture
def long():
    """A sequence that takes several blocks of queries, and two short ones around it."""
    source = np.random.default_rng(2)
    return [source.integers(5, 90, size).astype(np.int32) for size in (30, 500, 9)]


def compare(ours, theirs, *, tolerance=5e-5):
    np.testing.assert_allclose(ours, theirs, atol=tolerance)


@pytest.mark.parametrize("family", ["modernbert", "mmbert"])
@pytest.mark.parametrize("dialect", ["current", "older"])
def test_every_exit_is_that_of_the_reference(written, load, hidden, sequences, reference, family, dialect):
    where = written(family, dialect=dialect)
    network = load(where)
    layers = range(1, network.layers + 1)
    ours = hidden(network, sequences, layers)
    for index, ids in enumerate(sequences):
        theirs = reference(where, ids)
        for layer in layers:
            compare(ours[layer][index], theirs[layer])


@pytest.mark.parametrize("window", [8, 128, 300])
def test_a_text_far_longer_than_its_window_is_that_of_the_reference(written, load, hidden, long, reference, window):
    where = written("modernbert", shape=LONG, config={"local_attention": window})
    network = load(where)
    ours = hidden(network, long, {2, 4})
    for index, ids in enumerate(long):
        theirs = reference(where, ids)
        for layer in (2, 4):
            compare(ours[layer][index], theirs[layer])


def test_the_window_is_narrow_enough_for_a_mistake_in_it_to_show(written, long, reference):
    narrow, wide = (
        reference(written("modernbert", shape=LONG, config={"local_attention": window}), long[1])[4]
        for window in (8, 10)
    )
    assert np.abs(narrow - wide).max() > 0.01


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 2.0},
        YARN,
        YARN | {"attention_factor": 0.9, "beta_fast": 16, "beta_slow": 2},
        YARN | {"mscale": 0.7, "mscale_all_dim": 1.0},
    ],
    ids=["linear", "yarn", "yarn with its own range", "yarn with two scales"],
)
def test_stretched_positions_are_those_of_the_reference(written, load, hidden, long, reference, rope):
    parameters = {"full_attention": rope, "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0}}
    where = written("modernbert", shape=LONG, config={"rope_parameters": parameters})
    network = load(where)
    compare(hidden(network, long, {4})[4][1], reference(where, long[1])[4])


def test_the_older_scaling_of_positions_is_read_too(written, load, hidden, long, reference):
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 150, "rope_type": "yarn"}
    where = written("modernbert", shape=LONG, dialect="older", config={"rope_scaling": scaling})
    network = load(where)
    compare(hidden(network, long, {4})[4][1], reference(where, long[1])[4])


def test_an_application_with_another_default_dtype_gets_the_same_numbers(written, load, hidden, long):
    where = written("modernbert", shape=LONG)
    expected = hidden(load(where), long, {4})[4][1]
    torch.set_default_dtype(torch.float64)
    try:
        compare(hidden(load(where), long, {4})[4][1], expected, tolerance=0)
    finally:
        torch.set_default_dtype(torch.float32)


def test_biases_are_used_where_the_configuration_has_them(written, load, hidden, sequences, reference):
    flags = {"attention_bias": True, "mlp_bias": True, "norm_bias": True}
    where = written("modernbert", config=flags)
    network = load(where)
    for ours, ids in zip(hidden(network, sequences, {4})[4], sequences, strict=True):
        compare(ours, reference(where, ids)[4])


def test_a_result_does_not_depend_on_its_neighbours(written, load, hidden, long):
    network = load(written("modernbert", shape=LONG))
    together = hidden(network, long, {4})[4]
    for ids, ours in zip(long, together, strict=True):
        compare(hidden(network, [ids], {4})[4][0], ours, tolerance=1e-5)


def test_bfloat16_stays_close_to_float32(written, load, hidden, long):
    where = written("modernbert", shape=EncoderShape(positions=600, layers=4, spread=1.0))
    full, half = (hidden(load(where, dtype=dtype), long, {4})[4] for dtype in (torch.float32, torch.bfloat16))
    for one, other in zip(full, half, strict=True):
        one, other = one.mean(0), other.mean(0)
        assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.99


def test_the_plan_grows_with_the_length_alone_once_scores_are_not_written_out(written, load):
    network = load(written("modernbert"))
    plans = [network.plan_bytes(BatchShape(1, tokens, tokens)) for tokens in (2048, 4096, 8192)]
    assert plans[2] - plans[1] == pytest.approx(2 * (plans[1] - plans[0]), rel=0.05)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"layer_types": ["full_attention"]},
            "layer_types must name one of full_attention, sliding_attention for each",
        ),
        ({"layer_types": ["full_attention"] * 3 + ["causal"]}, "layer_types must name"),
        ({"rope_parameters": {"full_attention": {"rope_type": "longrope"}}}, "full_attention: rope_type 'longrope' is"),
        ({"rope_parameters": {"full_attention": YARN | {"truncate": False}}}, "truncate is false"),
        (
            {"rope_parameters": {"full_attention": YARN | {"original_max_position_embeddings": 0}}},
            "original_max_position_embeddings must be a positive whole number",
        ),
        ({"rope_parameters": []}, "rope_parameters must be an object"),
        ({"rope_parameters": {"full_attention": {"rope_theta": "x"}}}, "rope_theta must be a number above 0"),
        ({"hidden_activation": "mish"}, "hidden_activation 'mish' is not computed here"),
        ({"norm_bias": "no"}, "norm_bias must be true or false"),
        ({"num_attention_heads": 32}, "heads of 1 features cannot be turned in pairs"),
    ],
)
def test_a_configuration_that_is_not_computed_here_is_refused(written, change, message):
    config = json.loads((written("modernbert") / "config.json").read_text()) | change
    with pytest.raises(CheckpointError, match=message):
        ModernBertConfig.read(config, "config.json")
