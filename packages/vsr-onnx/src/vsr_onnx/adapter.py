"""The backend ``onnx``: what it can do here, and how it loads an encoder."""

from __future__ import annotations

from collections.abc import Mapping
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
    Supported,
)
from vsr_core.local import ComputeThreads
from vsr_core.taxonomy import Artifact, Capability, Feature

from .options import OnnxOptions

__all__ = ["OnnxAdapter"]

CAPABILITIES: Final = (
    Capability.EMBEDDING,
    Capability.SEQUENCE_CLASSIFICATION,
    Capability.PAIR_CLASSIFICATION,
    Capability.TOKEN_CLASSIFICATION,
    Capability.RERANKING,
)
"""What encoders are served for."""

_ARTIFACTS: Final = (Artifact.ONNX, Artifact.QUANTIZED)
_FEATURES: Final = (
    Feature.BATCHING,
    Feature.DIMENSIONS,
    Feature.LAYER_EXIT,
    Feature.PROVIDER_SELECTION,
    Feature.UNLOAD,
    Feature.CONCURRENT_LOAD,
    Feature.HOT_SWAP,
)

_NO_CAPABILITY: Final = "vsr-onnx serves encoders: embedding, classification, tagging and reranking alone"
_REFUSED: Final[Mapping[Feature, str]] = {
    Feature.STREAMING: "an encoder answers all at once",
    Feature.TOOLS: "an encoder calls no tools",
    Feature.STRUCTURED_OUTPUT: "an encoder writes no text that could have a structure",
    Feature.IMAGES: "vsr-onnx reads texts alone",
    Feature.MIXED_ADAPTER_BATCH: "an exported graph has one set of weights: merge an adapter before the export",
}


class OnnxAdapter(BackendAdapter):
    """Encoders on ONNX Runtime. Importing this module imports no framework; probing and loading do."""

    def __init__(self, context: BackendContext) -> None:
        self.namespace = context.name
        self._options: OnnxOptions = context.options or OnnxOptions()
        self._threads = ComputeThreads(context.threads)

    def capabilities(self) -> CapabilitySet:
        """What encoders are asked for, from ONNX graphs, whatever their family: the graph has all there is to it."""
        rules: list[tuple[Selector, Supported | Refused]] = [(Selector(), Refused("not_implemented", _NO_CAPABILITY))]
        rules += [
            (Selector(feature=feature), Refused("not_implemented", _REFUSED.get(feature, _NO_CAPABILITY)))
            for feature in Feature
        ]
        for capability in CAPABILITIES:
            rules += _of_capability(capability)
        return CapabilitySet.of(rules)

    def probe(self) -> RuntimeInfo:
        """What ONNX Runtime finds on this host; its providers are those that start, not all that are built in."""
        try:
            import onnxruntime

            from .providers import starts
        except (ImportError, OSError) as error:  # a library of the system may be what is missing
            return RuntimeInfo(usable=False, reason=f"ONNX Runtime cannot be imported: {error}")
        built_in = tuple(onnxruntime.get_available_providers())
        usable = tuple(provider for provider in built_in if starts(provider))
        versions = _versions(onnxruntime)
        idle = [provider for provider in built_in if provider not in usable]
        notes = [f"{', '.join(idle)} built in, and not to be started here"] if idle else []
        return RuntimeInfo(
            usable=True,
            versions=versions,
            devices=_devices(onnxruntime, usable),
            providers=usable,
            dtypes=("float32", "int8"),
            notes=(*notes, *_flavour_notes(tuple(versions))),
        )

    def load(self, request: LoadRequest) -> ModelHandle:
        """Read the graph, create its session on the provider asked for, and put the shared pipeline around it."""
        from .loading import load_encoder

        return load_encoder(request, options=self._options, threads=self._threads)

    async def close(self) -> None:
        """End the threads that drove engines."""
        self._threads.workers.close()


def _of_capability(capability: Capability) -> list[tuple[Selector, Supported | Refused]]:
    graphs = "vsr-onnx reads ONNX graphs: export the checkpoint with 'vsr export'"
    rules: list[tuple[Selector, Supported | Refused]] = [
        (Selector(capability=capability), Refused("artifact_unsupported", graphs))
    ]
    rules += [(Selector(capability=capability, artifact=artifact), Supported()) for artifact in _ARTIFACTS]
    rules += [(Selector(capability=capability, feature=feature), Supported()) for feature in _FEATURES]
    rules.append(
        (
            Selector(capability=capability, artifact=Artifact.QUANTIZED, feature=Feature.BATCHING),
            Refused(
                "alone", "texts run one by one on a quantized graph, since what shares a batch changes the numbers"
            ),
        )
    )
    if capability is not Capability.EMBEDDING:
        reason = f"{capability} gives no vectors whose dimensions could be chosen"
        rules.append((Selector(capability=capability, feature=Feature.DIMENSIONS), Refused("no_vectors", reason)))
    return rules


def _versions(onnxruntime: Any) -> dict[str, str]:
    """The distributions that provide the package ``onnxruntime``, which can be several, with their versions."""
    flavours = sorted(set(packages_distributions().get("onnxruntime", ())))
    return {name: version(name) for name in flavours} or {"onnxruntime": str(onnxruntime.__version__)}


def _flavour_notes(flavours: tuple[str, ...]) -> tuple[str, ...]:
    if len(flavours) < 2:
        return ()
    return (f"{' and '.join(flavours)} overwrite each other's files: uninstall all of them, then install one",)


def _devices(onnxruntime: Any, providers: tuple[str, ...]) -> tuple[str, ...]:
    """The devices of the providers that start, and those ONNX Runtime enumerates, which releases before 1.23 do not."""
    from .providers import PROVIDERS

    found = {device for provider, device in PROVIDERS.values() if provider in providers}
    if hasattr(onnxruntime, "get_ep_devices"):
        found |= {entry.device.type.name.lower() for entry in onnxruntime.get_ep_devices()}
    return tuple(sorted(found))
