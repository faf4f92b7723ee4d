"""A small and honest backend in numpy, for the kit to pass; each fault of ``faulty_backends`` is one change to it."""

from __future__ import annotations

import json

import numpy as np
from vsr_core.contract import (
    BackendAdapter,
    CapabilitySet,
    Choice,
    Refused,
    RuntimeInfo,
    Selector,
    Supported,
)
from vsr_core.errors import CheckpointError
from vsr_core.local import EngineOutput, WantHidden, WantLogits, build_encoder, pool
from vsr_core.taxonomy import Artifact, Capability, Feature

SERVED = (
    Capability.EMBEDDING,
    Capability.SEQUENCE_CLASSIFICATION,
    Capability.TOKEN_CLASSIFICATION,
)
FEATURES = (Feature.BATCHING, Feature.LAYER_EXIT, Feature.UNLOAD)


class PlainEngine:
    """Looks tokens up and mixes them, layer by layer, with the queries' weights of a BERT."""

    reduces = frozenset({"mean"})
    concurrency = 2

    def __init__(self, folder):
        from safetensors.numpy import load_file

        config = json.loads((folder / "config.json").read_text())
        try:
            tensors = load_file(folder / "model.safetensors")
        except Exception as error:
            raise CheckpointError(f"{folder / 'model.safetensors'} cannot be read: {error}") from None
        named = {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}
        self.table = named["embeddings.word_embeddings.weight"]
        self.mixers = [
            named[f"encoder.layer.{layer}.attention.self.query.weight"] for layer in range(config["num_hidden_layers"])
        ]
        self.head = named.get("classifier.weight")
        self.per_token = config["architectures"][0].endswith("ForTokenClassification")
        if self.head is not None:
            self.reduces = self.reduces | {"logits"}

    def run(self, batch):
        return EngineOutput([self.answer(batch, row) for row in batch.rows])

    def answer(self, batch, row):
        start, end = batch.offsets[row.sequence : row.sequence + 2]
        hidden = self.hidden(batch.ids[start:end], row.layer)
        if isinstance(row.want, WantHidden):
            return hidden
        if isinstance(row.want, WantLogits):
            if self.head is None:
                raise ValueError("the checkpoint has no head")
            return np.asarray((hidden if self.per_token else hidden.mean(0)) @ self.head.T, np.float32)
        return pool(hidden, row.want.spec)

    def hidden(self, ids, layer):
        hidden = self.table[ids]
        places = np.arange(len(ids), dtype=np.float32)[:, None] * np.float32(0.01)
        for mixer in self.mixers[:layer]:
            hidden = np.tanh((hidden + hidden.mean(0)) @ mixer / 2 + places)
        return hidden

    def plan_bytes(self, shape):
        return 64 + shape.tokens * self.table.shape[1] * 4

    def close(self):
        self.table = None


class PlainBackend(BackendAdapter):
    engine = PlainEngine
    served = SERVED

    def __init__(self, context):
        self.namespace = context.name

    def capabilities(self):
        rules = [(Selector(), Refused("not_implemented", "the plain backend has nothing of the kind"))]
        for capability in self.served:
            rules += [
                (Selector(capability=capability), Refused("berts_alone", "the plain backend reads BERT alone")),
                (Selector(capability=capability, family="bert", artifact=Artifact.FULL), Supported()),
            ]
            rules += [(Selector(capability=capability, feature=feature), Supported()) for feature in FEATURES]
        rules.append((Selector(capability=Capability.EMBEDDING, feature=Feature.DIMENSIONS), Supported()))
        return CapabilitySet.of(rules)

    def probe(self):
        return RuntimeInfo(usable=True, devices=("cpu",), dtypes=("float32",))

    def load(self, request):
        return build_encoder(
            request,
            self.engine(request.path),
            device=Choice(requested=str(request.device), actual="cpu"),
            dtype=Choice(requested=str(request.precision), actual="float32"),
        )
