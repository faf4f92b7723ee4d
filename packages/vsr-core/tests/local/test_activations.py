from __future__ import annotations

import math

import numpy as np
import pytest
from vsr_core.local.activations import ACTIVATIONS, erf

X = np.concatenate([np.linspace(-12, 12, 20_001), [0.0, -0.0, 1e-30, -1e-30, 4 - 1e-9, 4.0, 1e30, -1e30]])

REFERENCES = {
    "identity": lambda x: x,
    "tanh": math.tanh,
    "relu": lambda x: max(x, 0.0),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "gelu": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)),
    "gelu_new": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


def test_erf_is_exact_to_a_tenth_of_a_millionth():
    expected = np.array([math.erf(x) for x in X])
    np.testing.assert_allclose(erf(X), expected, rtol=0, atol=7e-8)


def test_erf_hands_on_what_is_not_finite():
    np.testing.assert_array_equal(erf(np.array([np.nan, np.inf, -np.inf])), [np.nan, 1, -1])


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_an_activation_is_the_function_of_its_name(name):
    x = np.linspace(-20, 20, 4001).astype(np.float32)
    found = ACTIVATIONS[name](x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [REFERENCES[name](float(one)) for one in x], rtol=1e-6, atol=1e-6)


def test_every_activation_is_compared():
    assert ACTIVATIONS.keys() == REFERENCES.keys()
