"""Prepared layers of a transformer: weights in the layout the kernels like best.

oneDNN keeps a weight in a blocked layout and fuses an activation or a residual into the product, but torch offers
that through private operators only. They are used where they exist and agree with ``torch.nn.functional`` on this
machine; everything works without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor

__all__ = ["ACTIVATIONS", "Activation", "Linear", "Norm", "activate", "padded_rows", "prepack", "prepack_supported"]

Activation = Literal["gelu", "gelu_new", "relu", "silu"]


@dataclass(frozen=True, slots=True)
class _Form:
    """An activation as oneDNN names it (attribute, algorithm), and as torch computes it."""

    attribute: str
    algorithm: str
    plain: Callable[[Tensor], Tensor]


_FORMS = MappingProxyType(
    {
        "gelu": _Form("gelu", "none", F.gelu),
        "gelu_new": _Form("gelu", "tanh", lambda x: F.gelu(x, approximate="tanh")),
        "relu": _Form("relu", "", F.relu),
        "silu": _Form("swish", "", F.silu),
    }
)

ACTIVATIONS: tuple[Activation, ...] = ("gelu", "gelu_new", "relu", "silu")
"""Every activation that is computed here, by the name transformers gives it."""


def activate(x: Tensor, activation: Activation) -> Tensor:
    """The activation of that name, as torch computes it."""
    return _FORMS[activation].plain(x)


@dataclass(frozen=True, slots=True)
class Linear:
    """A weight ``[out, in]``, in oneDNN's blocked layout where ``prepacked``, and its bias ``[out]`` if it has one."""

    weight: Tensor
    bias: Tensor | None
    prepacked: bool

    def apply(self, x: Tensor) -> Tensor:
        """``x @ weight.T + bias``."""
        if not self.prepacked:
            return F.linear(x, self.weight, self.bias)
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return y

    def apply_activation(self, x: Tensor, activation: Activation) -> Tensor:
        """The product, then the activation."""
        form = _FORMS[activation]
        if not self.prepacked:
            return form.plain(F.linear(x, self.weight, self.bias))
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, form.attribute, [], form.algorithm)
        return y

    def apply_residual(self, x: Tensor, residual: Tensor) -> Tensor:
        """The product, plus ``residual``."""
        if not self.prepacked:
            return F.linear(x, self.weight, self.bias).add_(residual)
        y: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, residual, self.weight, self.bias, "add")
        return y


@dataclass(frozen=True, slots=True)
class Norm:
    """Layer normalisation over the last dimension."""

    weight: Tensor
    bias: Tensor | None
    eps: float

    def apply(self, x: Tensor) -> Tensor:
        """The normalised ``x``."""
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)


def padded_rows(tokens: int) -> int:
    """``tokens`` rounded up to one of a few row counts: at most an eighth, or seven rows, more; beyond 1,024 a sixteenth.

    oneDNN compiles and keeps about a megabyte of kernels for every weight shape and row count it meets, so that
    free row counts would cost a server a gigabyte, and nearly every batch a compilation.
    """
    bits = (tokens - 1).bit_length()
    step = min(64, max(8, 1 << max(0, bits - 4))) if tokens <= 1024 else 1 << (bits - 5)
    return -(-tokens // step) * step


def prepack(weight: Tensor) -> Tensor:
    """The weight in oneDNN's blocked layout; a copy, so that the plain one may be freed."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight)
    return packed


def prepack_supported(dtype: torch.dtype) -> bool:
    """Whether the private operators are there for a dtype and agree with the public ones on this machine."""
    try:
        if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return False
        x = torch.linspace(-1, 1, 2 * 16).to(dtype).view(2, 16)
        weight = torch.linspace(-1, 1, 8 * 16).to(dtype).view(8, 16)
        bias = torch.linspace(-1, 1, 8).to(dtype)
        packed, plain = Linear(prepack(weight), bias, True), Linear(weight, bias, False)
        pairs = [
            (packed.apply(x), plain.apply(x)),
            (packed.apply_residual(x, x[:, :8]), plain.apply_residual(x, x[:, :8])),
            *((packed.apply_activation(x, name), plain.apply_activation(x, name)) for name in ACTIVATIONS),
        ]
    except (AttributeError, RuntimeError, TypeError):
        return False
    tolerance = 1e-5 if dtype == torch.float32 else 0.05
    return all(torch.allclose(ours, theirs, rtol=tolerance, atol=tolerance) for ours, theirs in pairs)
