"""Weights as the forward wants them: in one dtype, prepacked where that is to be had."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .linear import Linear, Norm, prepack, prepack_supported
from .weights import StrictTensors

__all__ = ["Packing"]


class Packing:
    """Takes the tensors of a checkpoint in a dtype, prepacked where the kernels like that, and counts their bytes."""

    def __init__(self, tensors: StrictTensors, dtype: torch.dtype) -> None:
        self.tensors = tensors
        self.dtype = dtype
        self.bytes = 0
        self._prepack = prepack_supported(dtype)

    def get(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A tensor by its name in the family."""
        return self._keep(self.tensors.take(name, shape))

    def linear(self, names: Sequence[str], out: int, width: int, *, bias: bool = True) -> Linear:
        """Linear layers side by side, each ``[out, width]``, as one."""
        weights = [self.tensors.take(f"{name}.weight", (out, width)) for name in names]
        biases = [self.tensors.take(f"{name}.bias", (out,)) for name in names] if bias else []
        return self.prepared(torch.cat(weights), torch.cat(biases) if bias else None)

    def prepared(self, weight: Tensor, bias: Tensor | None) -> Linear:
        """A linear layer of a weight ``[out, in]`` and a bias ``[out]``."""
        kept = self._keep(weight)
        return Linear(
            prepack(kept) if self._prepack else kept, None if bias is None else self._keep(bias), self._prepack
        )

    def norm(self, name: str, size: int, eps: float, *, bias: bool = True) -> Norm:
        """A layer normalisation, with or without a bias."""
        return Norm(self.get(f"{name}.weight", (size,)), self.get(f"{name}.bias", (size,)) if bias else None, eps)

    def _keep(self, tensor: Tensor) -> Tensor:
        kept = tensor.to(self.dtype).contiguous()
        self.bytes += kept.numel() * kept.element_size()
        return kept
