"""The backend ``torch``: what it can do here, and how it loads an encoder."""

from __future__ import annotations

import importlib.metadata

from vsr_core.catalog import model_folder, read_document
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
from vsr_core.errors import CheckpointError
from vsr_core.local import ComputeThreads, build_adapter
from vsr_core.taxonomy import Artifact, Capability, Feature

from .families import BORROWED, OWN, full_depth_only

__all__ = ["TorchBackend"]

CAPABILITIES = (
    Capability.EMBEDDING,
    Capability.SEQUENCE_CLASSIFICATION,
    Capability.PAIR_CLASSIFICATION,
    Capability.TOKEN_CLASSIFICATION,
    Capability.RERANKING,
)
"""What encoders are served for."""

_FEATURES = (
    Feature.BATCHING,
    Feature.DIMENSIONS,
    Feature.LAYER_EXIT,
    Feature.UNLOAD,
    Feature.CONCURRENT_LOAD,
    Feature.HOT_SWAP,
)


class TorchBackend(BackendAdapter):
    """Encoders on torch, on the CPU. Importing this module imports no framework; probing and loading do."""

    def __init__(self, context: BackendContext) -> None:
        self.namespace = context.name
        self._threads = ComputeThreads(context.threads)

    def capabilities(self) -> CapabilitySet:
        """What encoders are asked for, from safetensors, by family."""
        families = (*OWN, *BORROWED)
        rules: list[tuple[Selector, Supported | Refused]] = [
            (Selector(), Refused("not_implemented", "vsr-candle-torch does not offer this yet"))
        ]
        for capability in CAPABILITIES:
            listed = f"vsr-candle-torch serves {', '.join(families)} checkpoints"
            rules.append((Selector(capability=capability), Refused("family_unsupported", listed)))
            rules += [rule for family in families for rule in _of_family(capability, family)]
            rules += [(Selector(capability=capability, feature=feature), Supported()) for feature in _FEATURES]
            rules += [
                (
                    Selector(capability=capability, family=family, feature=Feature.LAYER_EXIT),
                    Refused("full_depth_only", full_depth_only(family)),
                )
                for family in BORROWED
            ]
            rules.append(
                (
                    Selector(capability=capability, feature=Feature.PROVIDER_SELECTION),
                    Refused("cpu_only", "vsr-candle-torch computes on the CPU"),
                )
            )
        rules += [
            (
                Selector(capability=capability, feature=Feature.DIMENSIONS),
                Refused("no_vectors", f"{capability} gives no vectors whose dimensions could be chosen"),
            )
            for capability in CAPABILITIES
            if capability is not Capability.EMBEDDING
        ]
        return CapabilitySet.of(rules)

    def probe(self) -> RuntimeInfo:
        """What torch finds on this host."""
        try:
            import torch

            from .precision import native_bfloat16
        except (ImportError, OSError) as error:
            return RuntimeInfo(usable=False, reason=f"torch cannot be imported: {error}")
        native = native_bfloat16()
        notes = [f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()} kernels"]
        if torch.cuda.is_available():
            notes.append("CUDA is there and not used: this version computes on the CPU")
        return RuntimeInfo(
            usable=True,
            versions={name: importlib.metadata.version(name) for name in ("torch", "safetensors", "tokenizers")},
            devices=("cpu",),
            dtypes=("float32", "bfloat16") if native else ("float32",),
            notes=tuple(notes),
        )

    def load(self, request: LoadRequest) -> ModelHandle:
        """Read the weights, settle the dtype, and put the shared pipeline around the engine."""
        from .loading import alone, load_encoder

        if request.base is not None:
            with alone():
                return build_adapter(request)
        config = read_document(model_folder(request.path), "config.json")
        if config is None:
            raise CheckpointError(f"{model_folder(request.path) / 'config.json'} is missing")
        return load_encoder(request, config.values, threads=self._threads)

    async def close(self) -> None:
        """End the threads that drove engines."""
        self._threads.workers.close()


def _of_family(capability: Capability, family: str) -> list[tuple[Selector, Supported | Refused]]:
    forms: tuple[Artifact, ...] = (Artifact.FULL, Artifact.MERGED_LORA)
    if family in OWN:
        forms += (Artifact.LORA_ADAPTER,)
    return [
        (
            Selector(capability=capability, family=family),
            Refused("artifact_unsupported", "vsr-candle-torch reads full safetensors weights"),
        ),
        *((Selector(capability=capability, family=family, artifact=artifact), Supported()) for artifact in forms),
    ]
