"""How far two engines are apart, in the terms that matter to what they are asked for."""

import numpy as np
import pytest
from vsr_core.local import Comparison, largest_shift, least_cosine

GOOD = np.eye(4, dtype=np.float32)


@pytest.mark.parametrize(
    "half",
    [GOOD[[0, 1, 2, 2]], np.where(GOOD > 0, np.nan, GOOD), np.zeros_like(GOOD), GOOD + 0.1],
    ids=["one text apart", "not finite", "zero", "all a little apart"],
)
def test_one_bad_text_is_enough(half):
    assert least_cosine(list(GOOD), list(GOOD)) == pytest.approx(1)
    assert not Comparison(kind="cosine", worst=least_cosine(list(GOOD), list(half.astype(np.float32)))).good


@pytest.mark.parametrize(
    ("activation", "half", "good"),
    [
        ("softmax", [4.0, 0.0], True),
        ("softmax", [4.01, 0.0], True),
        ("softmax", [0.2, 0.0], False),
        ("softmax", [1004.0, 1000.0], True),
        ("softmax", [np.nan, 0.0], False),
        ("sigmoid", [4.0, 0.1], False),
        ("sigmoid", [4.0, 0.001], True),
        ("none", [4.03, 0.0], True),
        ("none", [4.2, 0.0], False),
    ],
)
def test_a_head_is_judged_by_its_probabilities(activation, half, good):
    logits = [np.array([4.0, 0.0], np.float32), np.zeros((3, 2), np.float32)]
    shift = largest_shift(logits, [np.array(half, np.float32), logits[1]], activation=activation)
    found = Comparison(kind="probability", worst=shift)
    assert found.good is good
    assert "largest change of a probability" in found.said
