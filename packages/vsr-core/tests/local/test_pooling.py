from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from vsr_core.contract import PoolingSpec
from vsr_core.errors import InvalidInputError
from vsr_core.local import l2_normalize, non_finite_rows, pool, pooled_width, truncate_dimensions

HIDDEN = np.array([[1, -2], [3, 4], [5, 0], [7, 8]], np.float32)


def pooled(*modes, include_prompt=True, prompt_tokens=0, hidden=HIDDEN):
    spec = PoolingSpec(modes=modes, include_prompt=include_prompt)
    return pool(hidden, spec, prompt_tokens=prompt_tokens).tolist()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("cls", [1, -2]),
        ("last", [7, 8]),
        ("max", [7, 8]),
        ("mean", [4, 2.5]),
        ("mean_sqrt_len", [8, 5]),
        ("weighted_mean", [(1 + 6 + 15 + 28) / 10, (-2 + 8 + 0 + 32) / 10]),
    ],
)
def test_each_mode_reduces_all_tokens_of_a_row(mode, expected):
    assert pooled(mode) == pytest.approx(expected)


def test_several_modes_are_concatenated_in_the_order_stated():
    assert pooled("last", "cls", "mean") == [7, 8, 1, -2, 4, 2.5]
    assert pooled_width(2, PoolingSpec(modes=("last", "cls", "mean"))) == 6


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("cls", [3, 4]),
        ("last", [7, 8]),
        ("max", [7, 8]),
        ("mean", [5, 4]),
        ("mean_sqrt_len", [15 / 3**0.5, 12 / 3**0.5]),
        ("weighted_mean", [(6 + 15 + 28) / 9, (8 + 0 + 32) / 9]),
    ],
)
def test_prompt_tokens_can_be_left_out_and_positions_stay_those_of_the_sequence(mode, expected):
    assert pooled(mode, include_prompt=False, prompt_tokens=1) == pytest.approx(expected)


def test_the_prompt_counts_unless_it_is_to_be_left_out():
    assert pooled("mean", prompt_tokens=2) == pooled("mean")


@pytest.mark.parametrize("prompt_tokens", [4, 9])
def test_where_the_prompt_is_all_there_is_it_counts(prompt_tokens):
    assert pooled("mean", include_prompt=False, prompt_tokens=prompt_tokens) == pooled("mean")


def test_half_precision_is_summed_in_single_precision():
    hidden = np.full((32_768, 2), 10, np.float16)
    assert pooled("mean", hidden=hidden) == [10, 10]
    assert pooled("weighted_mean", hidden=hidden) == pytest.approx([10, 10], rel=1e-5)


def test_no_tokens_cannot_be_pooled():
    with pytest.raises(InvalidInputError, match=r"\[tokens, hidden\], not \[0, 2\]"):
        pooled("mean", hidden=HIDDEN[:0])


@pytest.mark.parametrize("mode", ["cls", "last", "max", "mean", "mean_sqrt_len", "weighted_mean"])
def test_a_pooled_vector_is_single_precision(mode):
    assert pool(HIDDEN.astype(np.float16), PoolingSpec(modes=(mode,))).dtype == np.float32


@given(hnp.arrays(np.float32, (5, 3), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_normalised_vectors_have_length_one_or_zero_and_are_finite(vectors):
    normalised = l2_normalize(vectors)
    lengths = np.linalg.norm(normalised.astype(np.float64), axis=1)
    assert np.isfinite(normalised).all()
    assert normalised.dtype == np.float32
    for length, vector in zip(lengths, vectors, strict=True):
        assert length == pytest.approx(1.0, abs=1e-5) if vector.any() else length == 0


def test_a_zero_vector_stays_zero():
    assert l2_normalize(np.zeros((1, 3), np.float32)).tolist() == [[0, 0, 0]]


def test_truncation_keeps_the_leading_dimensions():
    vectors = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert truncate_dimensions(vectors, 2).tolist() == [[0, 1], [3, 4]]
    assert truncate_dimensions(vectors, 3) is vectors


def test_rows_that_are_not_finite_are_found():
    vectors = np.zeros((4, 2), np.float32)
    assert list(non_finite_rows(vectors)) == []
    vectors[1, 0], vectors[3, 1] = np.nan, np.inf
    assert list(non_finite_rows(vectors)) == [1, 3]
