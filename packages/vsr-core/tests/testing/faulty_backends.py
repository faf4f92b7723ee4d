"""The plain backend with one fault at a time, each of which a test of the kit finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from plain_backend import PlainBackend, PlainEngine
from vsr_core.contract import (
    BlockingModelHandle,
    CapabilitySet,
    EmbeddingResponse,
    Envelope,
    Refused,
    Selector,
    Supported,
)
from vsr_core.errors import NonFiniteOutputError
from vsr_core.local import EngineOutput
from vsr_core.taxonomy import Artifact, Capability, Feature


class Embedder(PlainBackend):
    """Embeds, and nothing else."""

    served = (Capability.EMBEDDING,)


def crowded(batch):
    """Whether more share a batch than there are threads in any test, each with one text."""
    return len(batch.offsets) > 5


class WrongOrderEngine(PlainEngine):
    concurrency = 1

    def run(self, batch):
        rows = super().run(batch).rows
        return EngineOutput(rows[::-1] if crowded(batch) else rows)


class WrongOrder(Embedder):
    engine = WrongOrderEngine


class BatchDependentEngine(PlainEngine):
    concurrency = 1

    def run(self, batch):
        shift = np.float32(0.01 * crowded(batch))
        return EngineOutput([row + shift for row in super().run(batch).rows])


class BatchDependent(Embedder):
    engine = BatchDependentEngine


class Wrapped(BlockingModelHandle):
    """A handle around an honest one."""

    def __init__(self, inner):
        self.inner = inner

    @property
    def info(self):
        return self.inner.info

    async def infer(self, request, call):
        return self.changed(await self.inner.infer(request, call))

    def infer_blocking(self, request, call):
        return self.changed(self.inner.infer_blocking(request, call))

    def changed(self, response):
        return response

    async def close(self):
        await self.inner.close()


class Silent(Wrapped):
    def changed(self, response):
        reports = [replace(report, truncated=False, total_tokens=None) for report in response.envelope.inputs]
        return replace(response, envelope=replace(response.envelope, inputs=tuple(reports)))


class SilentTruncation(Embedder):
    def load(self, request):
        return Silent(super().load(request))


class Unashamed(Wrapped):
    def infer_blocking(self, request, call):
        try:
            return self.inner.infer_blocking(request, call)
        except NonFiniteOutputError:
            vectors = np.full((len(request.texts), 4), np.nan, np.float32)
            return EmbeddingResponse(envelope=Envelope(backend_id=self.info.backend_id), vectors=vectors)


class NanPassedOn(Embedder):
    def load(self, request):
        return Unashamed(super().load(request))


class ClaimsTooMuch(Embedder):
    """Says that a provider can be chosen, and takes no notice of what is required."""

    def capabilities(self):
        selector = Selector(capability=Capability.EMBEDDING, feature=Feature.PROVIDER_SELECTION)
        rules = [(rule.selector, rule.verdict) for rule in super().capabilities().rules]
        return CapabilitySet.of([*rules, (selector, Supported())])


class ClaimsAFamily(Embedder):
    """Says that it embeds with ModernBERT, whose checkpoints it cannot read."""

    def capabilities(self):
        selector = Selector(capability=Capability.EMBEDDING, family="modernbert", artifact=Artifact.FULL)
        rules = [(rule.selector, rule.verdict) for rule in super().capabilities().rules]
        return CapabilitySet.of([*rules, (selector, Supported())])


class Evasive(CapabilitySet):
    def decide(self, query):
        verdict = super().decide(query)
        evades = isinstance(verdict, Refused) and query.feature is not None
        return Refused("sold_out", "it is sold out") if evades else verdict


class AnotherReason(Embedder):
    """Advertises one reason, and is refused for another."""

    def capabilities(self):
        return Evasive(super().capabilities().rules)


class Shared(Wrapped):
    """Answers with whatever model its adapter has loaded last."""

    def __init__(self, inner, adapter):
        super().__init__(inner)
        self.adapter = adapter

    def infer_blocking(self, request, call):
        return self.adapter.current.infer_blocking(request, call)


class MutableChoice(Embedder):
    def load(self, request):
        self.current = super().load(request)
        return Shared(self.current, self)
