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
            factory="vsr_openvino.adapter:OpenVinoAdapter",
            summary="Models in OpenVINO IR or ONNX form on OpenVINO",
        )
    ]
