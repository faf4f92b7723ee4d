"""The adapter: it looks at ONNX Runtime on this host, and refuses every model for want of an engine."""

from __future__ import annotations

from importlib.metadata import packages_distributions, version
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

__all__ = ["OnnxAdapter"]

_REASON: Final = "this version of vsr-onnx has no engine yet: it cannot run ONNX models"
_COMPILED_IN: Final = (
    "providers are those compiled into ONNX Runtime; which of them serves is known once a session has been created"
)


class OnnxAdapter(BackendAdapter):
    """Models in ONNX form; every capability is refused until there is an engine."""

    def __init__(self, context: BackendContext) -> None:
        self.namespace = context.name

    def capabilities(self) -> CapabilitySet:
        return CapabilitySet.of(
            (Selector(feature=feature), Refused("not_implemented", _REASON)) for feature in (None, *Feature)
        )

    def probe(self) -> RuntimeInfo:
        try:
            import onnxruntime
        except (ImportError, OSError) as error:  # a library of the system may be what is missing
            return RuntimeInfo(usable=False, reason=f"ONNX Runtime cannot be imported: {error}")
        return RuntimeInfo(
            usable=False,
            reason=_REASON,
            versions=(versions := _versions(onnxruntime)),
            devices=_devices(onnxruntime),
            providers=tuple(onnxruntime.get_available_providers()),
            notes=(_COMPILED_IN, *_flavour_notes(tuple(versions))),
        )

    def load(self, request: LoadRequest) -> ModelHandle:
        raise LoadError(f"{request.backend_id}: {_REASON}", backend_id=str(request.backend_id))


def _versions(onnxruntime: Any) -> dict[str, str]:
    """The distributions that provide the package ``onnxruntime``, which can be several, with their versions."""
    flavours = sorted(set(packages_distributions().get("onnxruntime", ())))
    return {name: version(name) for name in flavours} or {"onnxruntime": str(onnxruntime.__version__)}


def _flavour_notes(flavours: tuple[str, ...]) -> tuple[str, ...]:
    if len(flavours) < 2:
        return ()
    return (f"{' and '.join(flavours)} overwrite each other's files: uninstall all of them, then install one",)


def _devices(onnxruntime: Any) -> tuple[str, ...]:
    """The kinds of device ONNX Runtime enumerates, lower case; releases before 1.23 enumerate none."""
    if not hasattr(onnxruntime, "get_ep_devices"):
        return ()
    return tuple(sorted({entry.device.type.name.lower() for entry in onnxruntime.get_ep_devices()}))
