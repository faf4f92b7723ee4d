"""What this CPU computes in natively."""

from __future__ import annotations

import torch

__all__ = ["native_bfloat16", "torch_dtype"]


def native_bfloat16() -> bool:
    """Whether this CPU multiplies bf16 natively (AVX512_BF16 or AMX) and torch's oneDNN will use it."""
    flags = torch.backends.cpu.get_cpu_capability(), torch.cpu._is_avx512_bf16_supported()
    return flags[0] not in ("DEFAULT", "NO AVX") and bool(flags[1] or torch.cpu._is_amx_tile_supported())


def torch_dtype(name: str | None) -> torch.dtype:
    """The dtype by numpy's name."""
    return torch.bfloat16 if name == "bfloat16" else torch.float32
