"""The backend ``openvino``: what it can do here, and how it loads an encoder."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from vsr_core.contract import (
    BackendAdapter,
    BackendContext,
    CapabilitySet,
    LoadRequest,
    ModelHandle,
    Refused,
    RuntimeInfo,
    Selector,
    Supported,
)
from vsr_core.taxonomy import Artifact, Capability, Feature

from .options import OpenVinoOptions

__all__ = ["OpenVinoBackend"]

CAPABILITIES = (
    Capability.EMBEDDING,
    Capability.SEQUENCE_CLASSIFICATION,
    Capability.PAIR_CLASSIFICATION,
    Capability.TOKEN_CLASSIFICATION,
    Capability.RERANKING,
)
"""What graphs are served for."""

_FEATURES = (
    Feature.BATCHING,
    Feature.LAYER_EXIT,
    Feature.PROVIDER_SELECTION,
    Feature.UNLOAD,
    Feature.CONCURRENT_LOAD,
    Feature.HOT_SWAP,
)


class OpenVinoBackend(BackendAdapter):
    """Encoders on OpenVINO, from its own IR or from ONNX. Importing this module imports no framework."""

    def __init__(self, context: BackendContext) -> None:
        self.namespace = context.name
        self._threads = context.threads
        self._options = context.options if isinstance(context.options, OpenVinoOptions) else OpenVinoOptions()

    def capabilities(self) -> CapabilitySet:
        """What graphs of encoders are asked for, whatever their family."""
        rules: list[tuple[Selector, Supported | Refused]] = [
            (Selector(), Refused("not_implemented", "vsr-openvino does not offer this yet")),
            *((Selector(feature=feature), _no_feature(feature)) for feature in Feature),
        ]
        for capability in CAPABILITIES:
            rules += _of_artifacts(capability)
            rules += [(Selector(capability=capability, feature=feature), Supported()) for feature in _FEATURES]
            rules.append((Selector(capability=capability, feature=Feature.DIMENSIONS), _dimensions(capability)))
        return CapabilitySet.of(rules)

    def probe(self) -> RuntimeInfo:
        """What OpenVINO finds on this host."""
        try:
            from .compiling import DTYPES
            from .untracked import ov

            core = ov.Core()
            devices = tuple(core.available_devices)
        except (ImportError, OSError, RuntimeError) as error:  # RuntimeError is what OpenVINO itself raises
            return RuntimeInfo(usable=False, reason=f"OpenVINO cannot be used: {error}")
        optimised = {name for device in devices for name in core.get_property(device, "OPTIMIZATION_CAPABILITIES")}
        return RuntimeInfo(
            usable=bool(devices),
            reason=None if devices else "OpenVINO finds no device here that it could compute on",
            versions={"openvino": _version(ov)},
            devices=tuple(device.lower() for device in devices),
            dtypes=tuple(dtype for name, dtype in DTYPES.items() if name in optimised),
            notes=tuple(f"{device.lower()} is {core.get_property(device, 'FULL_DEVICE_NAME')}" for device in devices),
        )

    def load(self, request: LoadRequest) -> ModelHandle:
        """Read the graph, settle device and dtype, and put the shared pipeline around the engine."""
        from vsr_core.local import ComputeThreads

        from .loading import load_encoder

        threads = ComputeThreads(request.threads if request.threads is not None else self._threads).total
        return load_encoder(request, self._options, threads=threads)


def _of_artifacts(capability: Capability) -> list[tuple[Selector, Supported | Refused]]:
    unread = Refused(
        "artifact_unsupported", "vsr-openvino reads OpenVINO IR and ONNX: export the model with 'vsr export'"
    )
    quantized = Refused(
        "quantized_unsupported", "vsr-openvino states no tolerance for quantised graphs and serves none of them yet"
    )
    return [
        (Selector(capability=capability), unread),
        (Selector(capability=capability, artifact=Artifact.QUANTIZED), quantized),
        *(
            (Selector(capability=capability, artifact=artifact), Supported())
            for artifact in (Artifact.OPENVINO_IR, Artifact.ONNX)
        ),
    ]


def _dimensions(capability: Capability) -> Supported | Refused:
    if capability is Capability.EMBEDDING:
        return Supported()
    return Refused("no_vectors", f"{capability} gives no vectors whose dimensions could be chosen")


def _no_feature(feature: Feature) -> Refused:
    return Refused("not_implemented", f"vsr-openvino has no {feature.value.replace('_', ' ')} for this")


def _version(ov: Any) -> str:
    try:
        return version("openvino")
    except PackageNotFoundError:  # installed by other means than a wheel
        return str(ov.__version__)
