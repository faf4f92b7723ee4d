"""The backend ``torch``: what it can do here, and how it loads an encoder."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
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
from vsr_core.errors import CheckpointError
from vsr_core.local import ComputeThreads
from vsr_core.taxonomy import Artifact, Capability, Family, Feature

__all__ = ["TorchBackend"]

FAMILIES = (Family.BERT, Family.MINILM)

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
        """Embeddings of BERT-family checkpoints, from safetensors."""
        rules: list[tuple[Selector, Supported | Refused]] = [
            (Selector(), Refused("not_implemented", "vsr-candle-torch does not offer this yet")),
            (
                Selector(capability=Capability.EMBEDDING),
                Refused("family_unsupported", f"vsr-candle-torch embeds {', '.join(FAMILIES)} checkpoints so far"),
            ),
        ]
        for family in FAMILIES:
            cell = Selector(capability=Capability.EMBEDDING, family=family.value)
            rules.append((cell, Refused("artifact_unsupported", "vsr-candle-torch reads full safetensors weights")))
            full = Selector(capability=Capability.EMBEDDING, family=family.value, artifact=Artifact.FULL)
            rules.append((full, Supported()))
        rules += [(Selector(capability=Capability.EMBEDDING, feature=feature), Supported()) for feature in _FEATURES]
        rules.append(
            (
                Selector(capability=Capability.EMBEDDING, feature=Feature.PROVIDER_SELECTION),
                Refused("cpu_only", "vsr-candle-torch computes on the CPU"),
            )
        )
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
        from .loading import load_encoder

        config = _read_config(request.path)
        threads = self._threads
        return load_encoder(request, config, threads=threads)


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} holds no JSON object")
    return config
