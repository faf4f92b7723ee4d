"""Prepacked and plain layers give the same numbers."""

import numpy as np
import pytest
import torch
from vsr_candle_torch import linear, packing
from vsr_candle_torch.linear import Linear, padded_rows, prepack, prepack_supported


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 7, 130])
def test_prepacked_agrees_with_plain(dtype, rows):
    if not prepack_supported(dtype):
        pytest.skip(f"this build of torch has no prepacked {dtype} layers")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 48, generator=generator).to(dtype)
    weight = torch.randn(32, 48, generator=generator).to(dtype)
    bias = torch.randn(32, generator=generator).to(dtype)
    residual = torch.randn(rows, 32, generator=generator).to(dtype)
    packed, plain = Linear(prepack(weight), bias, True), Linear(weight, bias, False)
    tolerance = {"atol": 1e-4, "rtol": 1e-4} if dtype == torch.float32 else {"atol": 0.1, "rtol": 0.02}
    torch.testing.assert_close(packed.apply(x), plain.apply(x), **tolerance)
    torch.testing.assert_close(packed.apply_residual(x, residual), plain.apply_residual(x, residual), **tolerance)
    for activation in ("gelu", "gelu_new", "relu"):
        ours, theirs = (layer.apply_activation(x, activation) for layer in (packed, plain))
        torch.testing.assert_close(ours, theirs, **tolerance)


def test_a_build_without_the_private_operators_is_noticed(monkeypatch):
    def missing(weight):
        raise AttributeError("_reorder_linear_weight")

    monkeypatch.setattr(linear, "prepack", missing)
    assert not prepack_supported(torch.float32)


def test_operators_that_disagree_are_not_used(monkeypatch):
    monkeypatch.setattr(linear, "prepack", lambda weight: prepack(weight * 2))
    assert not prepack_supported(torch.float32)


def test_an_unpacked_encoder_gives_the_same_states(monkeypatch, load, hidden, sequences):
    packed = load()
    monkeypatch.setattr(packing, "prepack_supported", lambda dtype: False)
    states = [hidden(network, sequences, {3})[3][4] for network in (packed, load())]
    np.testing.assert_allclose(*states, atol=1e-5)


def test_row_counts_are_few_and_little_larger_than_asked():
    for tokens in range(1, 3000):
        rows = padded_rows(tokens)
        assert tokens <= rows <= max(tokens + 7, tokens * 1.125)
        assert padded_rows(rows) == rows
    assert len({padded_rows(tokens) for tokens in range(1, 1025)}) == 40
    assert len({padded_rows(tokens) for tokens in range(1025, 32769)}) == 80
