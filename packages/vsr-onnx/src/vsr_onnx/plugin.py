"""What vsr-onnx registers with vsr."""

from __future__ import annotations

from vsr_core.contract import BackendDescriptor, hookimpl

__all__ = ["vsr_backends"]


@hookimpl
def vsr_backends() -> list[BackendDescriptor]:
    """The backend ``onnx``."""
    return [
        BackendDescriptor(
            name="onnx",
            contract="1.0",
            factory="vsr_onnx.adapter:OnnxAdapter",
            summary="Encoders on ONNX Runtime: embed, classify, tag and rerank from ONNX graphs",
            options="vsr_onnx.options:OnnxOptions",
            exporter="vsr_onnx.export:export",
        )
    ]
