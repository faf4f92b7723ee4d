"""Activation functions in numpy, by the names transformers gives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..contract import FloatArray

__all__ = ["ACTIVATIONS", "erf"]

_BEYOND = 4.0
"""Where erf differs from one by less than 2e-8."""

_NUMERATOR = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_DENOMINATOR = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def erf(x: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """The error function, elementwise, to within 7e-8: the rational approximation that Eigen uses for float32."""
    wide = x.astype(np.float64)
    clipped = np.clip(wide, -_BEYOND, _BEYOND)
    square = clipped * clipped
    value = clipped * _polynomial(square, _NUMERATOR) / _polynomial(square, _DENOMINATOR)
    return np.where(np.abs(wide) >= _BEYOND, np.sign(wide), value)


def _polynomial(x: npt.NDArray[np.float64], coefficients: tuple[float, ...]) -> npt.NDArray[np.float64]:
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= x
        total += coefficient
    return total


def _gelu(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * x * (1.0 + erf(x / math.sqrt(2.0))), np.float32)


def _gelu_new(x: FloatArray) -> FloatArray:
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return np.asarray(0.5 * x * (1.0 + np.tanh(inner)), np.float32)


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)), np.float32)


ACTIVATIONS: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {
        "identity": lambda x: x,
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, np.float32(0)),
        "sigmoid": _sigmoid,
        "silu": lambda x: x * _sigmoid(x),
        "gelu": _gelu,
        "gelu_new": _gelu_new,
    }
)
"""Each maps float32 to float32, elementwise; ``gelu`` is the exact one, ``gelu_new`` its approximation by tanh."""
