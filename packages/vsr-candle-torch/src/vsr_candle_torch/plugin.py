"""What the torch distribution contributes; imports no framework."""

from __future__ import annotations

from vsr_core.contract import BackendDescriptor, hookimpl

__all__ = ["vsr_backends"]


@hookimpl
def vsr_backends() -> list[BackendDescriptor]:
    """The backend ``torch``."""
    return [
        BackendDescriptor(
            name="torch",
            contract="1.0",
            factory="vsr_candle_torch.adapter:TorchBackend",
            summary="Encoders on torch: BERT and MiniLM from safetensors, packed and batched",
        )
    ]
