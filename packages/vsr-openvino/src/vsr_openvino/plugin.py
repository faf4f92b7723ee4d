"""What vsr-openvino registers with vsr."""

from __future__ import annotations

from vsr_core.contract import BackendDescriptor, hookimpl

__all__ = ["vsr_backends"]


@hookimpl
def vsr_backends() -> list[BackendDescriptor]:
    """The backend ``openvino``."""
    return [
        BackendDescriptor(
            name="openvino",
            contract="1.0",
            factory="vsr_openvino.adapter:OpenVinoBackend",
            summary="Encoders on OpenVINO: embed, classify, tag and rerank from its IR or from ONNX",
            options="vsr_openvino.options:OpenVinoOptions",
            exporter="vsr_openvino.export:export",
        )
    ]
