"""What the torch distribution contributes; imports no framework."""

from __future__ import annotations

from vsr_core.contract import BackendDescriptor, FamilyDescriptor, hookimpl

from .families import CONTRIBUTED

__all__ = ["vsr_backends", "vsr_model_families"]


@hookimpl
def vsr_backends() -> list[BackendDescriptor]:
    """The backend ``torch``."""
    return [
        BackendDescriptor(
            name="torch",
            contract="1.0",
            factory="vsr_candle_torch.adapter:TorchBackend",
            summary="Encoders on torch: embed, classify, tag and rerank from safetensors, packed and batched",
            merger="vsr_candle_torch.merging:merge",
        )
    ]


@hookimpl
def vsr_model_families() -> list[FamilyDescriptor]:
    """The encoder families the core does not know, run by transformers' code."""
    return list(CONTRIBUTED)
