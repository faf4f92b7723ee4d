"""How the features a backend claims are put to the test, one function each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

import numpy as np

from ...contract import EmbeddingRequest, EmbeddingResponse, InferenceRequest, ModelInfo, Response
from ...errors import BackendError, ConfigError
from ...runtime import Runtime
from ...taxonomy import Capability, Feature
from .answers import check_answer, check_envelope
from .asking import ODD_TEXTS, TEXTS, answer, ask, question, vectors
from .claims import apart, demand, distance
from .subject import Model

__all__ = ["EXERCISES", "Exercise", "answers_through_a_runtime", "asked"]

Exercise = Callable[[Model, float], None]
"""Puts a feature to the test on the model of a cell, within a tolerance."""

_NOWHERE = "require:nowhere"


def asked(
    runtime: Runtime, capability: Capability, model: str, *, texts: Sequence[str] = TEXTS, **arguments: Any
) -> Response:
    """The call of the facade for a capability; of pairs the texts are the first ones, for a reranking the documents."""
    match capability:
        case Capability.EMBEDDING:
            return runtime.embed(texts, model=model, **arguments)
        case Capability.SEQUENCE_CLASSIFICATION:
            return runtime.classify(texts, model=model, **arguments)
        case Capability.PAIR_CLASSIFICATION:
            return runtime.nli([(text, TEXTS[0]) for text in texts], model=model, **arguments)
        case Capability.TOKEN_CLASSIFICATION:
            return runtime.tag(texts, model=model, **arguments)
        case Capability.RERANKING:
            return runtime.rerank(TEXTS[0], texts, model=model, **arguments)
    raise NotImplementedError(f"no facade call asks for {capability}: give exercise() one")


def _batching(model: Model, tolerance: float) -> None:
    """Many texts in one request are all answered."""
    del tolerance
    handle, request = model.load(), question(model.cell.capability, TEXTS * 8)
    check_answer(request, answer(handle, request))


def _dimensions(model: Model, tolerance: float) -> None:
    """Fewer dimensions are the leading ones, normalised where the whole vector is."""
    handle, width = model.load(), model.entry["dimensions"][0]
    whole, short = (answer(handle, _embed(dimensions)) for dimensions in (None, width))
    if not isinstance(whole, EmbeddingResponse) or not isinstance(short, EmbeddingResponse):
        raise AssertionError(f"{model.cell.capability} gives no vectors whose dimensions could be chosen")
    demand(short.vectors.shape == (len(TEXTS), width), f"dimensions={width} gives the shape {short.vectors.shape}")
    envelope = short.envelope
    demand((envelope.requested_dimensions, envelope.dimensions) == (width, width), f"the envelope says {envelope}")
    lead = whole.vectors[:, :width]
    if short.normalized:
        lead = lead / np.linalg.norm(lead, axis=1, keepdims=True)
    gap = distance(short.vectors, lead)
    demand(gap <= 10 * tolerance, f"dimensions={width} is off the leading dimensions by {gap:g}")


def _embed(dimensions: int | None) -> InferenceRequest[EmbeddingResponse]:
    return EmbeddingRequest(texts=TEXTS, dimensions=dimensions)


def _layer_exit(model: Model, tolerance: float) -> None:
    """Another depth is another answer, and the envelope says which it was."""
    cell, whole = model.cell, model.load()
    deep = ask(whole, question(cell.capability, TEXTS[:2]))
    if cell.capability is Capability.RERANKING:  # its requests name no layer; the load may
        shallow = ask(model.load(layer=1), question(cell.capability, TEXTS[:2]))
    else:
        request = question(cell.capability, TEXTS[:2], layer=1)
        response = answer(whole, request)
        check_answer(request, response)
        said = (response.envelope.requested_layer, response.envelope.layer)
        demand(said == (1, 1), f"layer=1 was asked for, the envelope says (requested, served) = {said}")
        shallow = vectors(request, response)
    demand(apart(shallow, deep) > tolerance, "layer=1 answers as the full depth does")


def _unload(model: Model, tolerance: float) -> None:
    """What was unloaded is gone, and comes back when it is asked for."""
    del tolerance
    with model.bench.runtime({"m": model.entry}) as runtime:
        name = f"{model.bench.backend}:m"
        runtime.load(name)
        demand(runtime.unload(name, timeout=30), "unload() finds nothing loaded after load()")
        demand(_state(runtime, name).state == "not_loaded", "after unload() the model is still listed as loaded")
        asked(runtime, model.cell.capability, name)


def _hot_swap(model: Model, tolerance: float) -> None:
    """A new generation beside the old answers as that did."""
    with model.bench.runtime({"m": model.entry}) as runtime:
        name, handle = f"{model.bench.backend}:m", model.load()
        before = asked(runtime, model.cell.capability, name)
        runtime.swap(name, timeout=60)
        after = asked(runtime, model.cell.capability, name)
        request = question(model.cell.capability, TEXTS)
        gap = apart(vectors(request, before), vectors(request, after))
        demand(gap <= tolerance, f"the same files answer otherwise after a swap, by {gap:g}")
        ask(handle, request)


def _concurrent_load(model: Model, tolerance: float) -> None:
    """A model answers while another one is loaded."""
    request = question(model.cell.capability, TEXTS)
    handle = model.load()
    expected = ask(handle, request)
    with ThreadPoolExecutor(2) as threads:
        loading = threads.submit(lambda: model.load(name="other"))
        for _ in range(4):
            gap = apart(ask(handle, request), expected)
            demand(gap <= tolerance, f"while another model is loaded the answer is off by {gap:g}")
        ask(loading.result(), request)


def _provider_selection(model: Model, tolerance: float) -> None:
    """What computes is told, and what was required is had or refused."""
    del tolerance
    info = model.load().info
    choice = info.provider or info.device
    demand(choice is not None and choice.actual, "neither a provider nor a device is told of what was loaded")
    with model.bench.runtime({"m": model.entry}, device=_NOWHERE) as runtime:
        try:
            found = runtime.load(f"{model.bench.backend}:m")
        except (BackendError, ConfigError):
            return
    raise AssertionError(f"device {_NOWHERE!r} was required and {found.device} was had")


def _state(runtime: Runtime, name: str) -> ModelInfo:
    return next(info for info in runtime.models() if str(info.backend_id) == name)


def answers_through_a_runtime(model: Model) -> None:
    """A capability is answered by the facade's own call, whatever the texts."""
    with model.bench.runtime({"m": model.entry}) as runtime:
        name, capability = f"{model.bench.backend}:m", model.cell.capability
        texts = (*TEXTS[:2], *ODD_TEXTS)
        check_answer(question(capability, texts), response := asked(runtime, capability, name, texts=texts))
        info = _state(runtime, name)
        check_envelope(response, info)
        demand(capability in info.capabilities, f"the model's info names {info.capabilities}")


EXERCISES: Mapping[Feature, Exercise] = MappingProxyType(
    {
        Feature.BATCHING: _batching,
        Feature.DIMENSIONS: _dimensions,
        Feature.LAYER_EXIT: _layer_exit,
        Feature.UNLOAD: _unload,
        Feature.HOT_SWAP: _hot_swap,
        Feature.CONCURRENT_LOAD: _concurrent_load,
        Feature.PROVIDER_SELECTION: _provider_selection,
    }
)
