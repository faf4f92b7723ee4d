"""The adapter: it looks at OpenVINO on this host, and refuses every model for want of an engine."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from vsr_core.contract import (
    BackendAdapter,
    BackendContext,
    CapabilitySet,
    LoadRequest,
    ModelHandle,
    Refused,
    RuntimeInfo,
    Selector,
)
from vsr_core.errors import LoadError
from vsr_core.taxonomy import Feature

__all__ = ["OpenVinoAdapter"]

_REASON: Final = "this version of vsr-openvino has no engine yet: it cannot run models"
_DTYPES: Final = {
    "FP32": "float32",
    "FP16": "float16",
    "BF16": "bfloat16",
    "INT8": "int8",
    "INT4": "int4",
}
"""The names OpenVINO has among a device's optimisation capabilities for what are dtypes."""


class OpenVinoAdapter(BackendAdapter):
    """Models on OpenVINO; every capability is refused until there is an engine."""

    def __init__(self, context: BackendContext) -> None:
        self.namespace = context.name

    def capabilities(self) -> CapabilitySet:
        return CapabilitySet.of(
            (Selector(feature=feature), Refused("not_implemented", _REASON)) for feature in (None, *Feature)
        )

    def probe(self) -> RuntimeInfo:
        try:
            import openvino

            core = openvino.Core()
            devices = tuple(core.available_devices)
        except (ImportError, OSError, RuntimeError) as error:  # RuntimeError is what OpenVINO itself raises
            return RuntimeInfo(usable=False, reason=f"OpenVINO cannot be used: {error}")
        optimised = {name for device in devices for name in core.get_property(device, "OPTIMIZATION_CAPABILITIES")}
        return RuntimeInfo(
            usable=False,
            reason=_REASON,
            versions={"openvino": _version(openvino)},
            devices=tuple(device.lower() for device in devices),
            dtypes=tuple(dtype for name, dtype in _DTYPES.items() if name in optimised),
            notes=tuple(f"{device.lower()} is {core.get_property(device, 'FULL_DEVICE_NAME')}" for device in devices),
        )

    def load(self, request: LoadRequest) -> ModelHandle:
        raise LoadError(f"{request.backend_id}: {_REASON}", backend_id=str(request.backend_id))


def _version(openvino: Any) -> str:
    try:
        return version("openvino")
    except PackageNotFoundError:  # installed by other means than a wheel
        return str(openvino.__version__)
