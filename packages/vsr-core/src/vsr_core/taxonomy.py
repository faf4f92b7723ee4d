"""The axes along which models and backends are described, never mixed.

Each closed axis is an enum whose members carry a value (what travels in JSON) and a locked integer code
(what crosses a language border). ``taxonomy.lock.json`` holds the codes: a member may be appended with the
next free code, and no code is ever changed or used again. ``Family`` is open: the core members have codes,
a plugin's family travels by name alone (``code_of`` gives None).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from importlib import resources
from typing import Self

__all__ = [
    "AXES",
    "Artifact",
    "Axis",
    "Capability",
    "ErrorClass",
    "Family",
    "Feature",
    "Kind",
    "Modality",
    "code_of",
    "drift",
    "locked_codes",
]


class Axis(str, Enum):
    """A closed axis: a string value and a locked integer ``code``."""

    code: int

    def __new__(cls, value: str, code: int = 0) -> Self:  # the default is for look-ups by value alone
        member = str.__new__(cls, value)
        member._value_ = value
        member.code = code
        return member

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def values(cls) -> tuple[str, ...]:
        """Every value of the axis, in code order."""
        return tuple(member.value for member in sorted(cls, key=lambda member: member.code))


class Kind(Axis):
    """A family of capabilities with its own role namespace and facade calls."""

    EMBEDDING = "embedding", 1
    CLASSIFICATION = "classification", 2
    TOKEN_CLASSIFICATION = "token_classification", 3
    RERANKING = "reranking", 4
    GUARD = "guard", 5
    GENERATION = "generation", 6
    MODEL_SELECTION = "model_selection", 7


class Capability(Axis):
    """What is asked for."""

    EMBEDDING = "embedding", 1
    MULTIMODAL_EMBEDDING = "multimodal_embedding", 2
    SEQUENCE_CLASSIFICATION = "sequence_classification", 3
    PAIR_CLASSIFICATION = "pair_classification", 4
    GENERATIVE_CLASSIFICATION = "generative_classification", 5
    MULTI_TASK = "multi_task", 6
    TOKEN_CLASSIFICATION = "token_classification", 7
    SPANS = "spans", 8
    RERANKING = "reranking", 9
    GUARD = "guard", 10
    GENERATION = "generation", 11
    MODEL_SELECTION = "model_selection", 12
    ADAPTER_SERVING = "adapter_serving", 13
    SIMILARITY = "similarity", 14
    BIENCODER_RERANKING = "biencoder_reranking", 15
    MODALITY_ROUTING = "modality_routing", 16

    @property
    def kind(self) -> Kind:
        """The kind whose roles and facade calls ask for this capability."""
        return _KIND_OF[self]

    @property
    def derived_from(self) -> Capability | None:
        """The capability core computes this one from, or None where a backend must offer it itself."""
        return _DERIVED_FROM.get(self)


_KIND_OF: Mapping[Capability, Kind] = {
    Capability.EMBEDDING: Kind.EMBEDDING,
    Capability.MULTIMODAL_EMBEDDING: Kind.EMBEDDING,
    Capability.SIMILARITY: Kind.EMBEDDING,
    Capability.SEQUENCE_CLASSIFICATION: Kind.CLASSIFICATION,
    Capability.PAIR_CLASSIFICATION: Kind.CLASSIFICATION,
    Capability.GENERATIVE_CLASSIFICATION: Kind.CLASSIFICATION,
    Capability.MULTI_TASK: Kind.CLASSIFICATION,
    Capability.ADAPTER_SERVING: Kind.CLASSIFICATION,
    Capability.MODALITY_ROUTING: Kind.CLASSIFICATION,
    Capability.TOKEN_CLASSIFICATION: Kind.TOKEN_CLASSIFICATION,
    Capability.SPANS: Kind.TOKEN_CLASSIFICATION,
    Capability.RERANKING: Kind.RERANKING,
    Capability.BIENCODER_RERANKING: Kind.RERANKING,
    Capability.GUARD: Kind.GUARD,
    Capability.GENERATION: Kind.GENERATION,
    Capability.MODEL_SELECTION: Kind.MODEL_SELECTION,
}

_DERIVED_FROM: Mapping[Capability, Capability] = {
    Capability.SIMILARITY: Capability.EMBEDDING,
    Capability.BIENCODER_RERANKING: Capability.EMBEDDING,
    Capability.MODALITY_ROUTING: Capability.SEQUENCE_CLASSIFICATION,
}


class Family(Axis):
    """The architectures the core knows by name; the axis is open, a plugin's family is a plain string."""

    BERT = "bert", 1
    MINILM = "minilm", 2
    ROBERTA = "roberta", 3
    XLM_ROBERTA = "xlm_roberta", 4
    MODERNBERT = "modernbert", 5
    MMBERT = "mmbert", 6
    DEBERTA = "deberta", 7
    QWEN3 = "qwen3", 8
    GEMMA = "gemma", 9
    QWEN3_GUARD = "qwen3_guard", 10
    SIGLIP = "siglip", 11
    LLAMA = "llama", 12
    MLP = "mlp", 13


class Artifact(Axis):
    """The form of the weights."""

    FULL = "full", 1
    MERGED_LORA = "merged_lora", 2
    LORA_ADAPTER = "lora_adapter", 3
    ONNX = "onnx", 4
    OPENVINO_IR = "openvino_ir", 5
    QUANTIZED = "quantized", 6
    GGUF = "gguf", 7
    REMOTE = "remote", 8


class Modality(Axis):
    """What goes in."""

    TEXT = "text", 1
    IMAGE = "image", 2
    AUDIO = "audio", 3


class Feature(Axis):
    """A runtime property a caller may require."""

    BATCHING = "batching", 1
    DIMENSIONS = "matryoshka_dimensions", 2
    LAYER_EXIT = "layer_exit", 3
    PROVIDER_SELECTION = "provider_selection", 4
    UNLOAD = "unload", 5
    CONCURRENT_LOAD = "concurrent_load", 6
    HOT_SWAP = "hot_swap", 7
    STREAMING = "streaming", 8
    TOOLS = "tools", 9
    MIXED_ADAPTER_BATCH = "mixed_adapter_batch", 10
    IMAGES = "images", 11
    STRUCTURED_OUTPUT = "structured_output", 12


class ErrorClass(Axis):
    """Why an attempt failed, as far as the attempt loop needs to know."""

    RATE_LIMITED = "rate_limited", 1
    QUOTA_EXHAUSTED = "quota_exhausted", 2
    OVERLOADED = "overloaded", 3
    SERVER_ERROR = "server_error", 4
    REQUEST_TIMEOUT = "request_timeout", 5
    CONNECT_ERROR = "connect_error", 6
    FIRST_TOKEN_TIMEOUT = "first_token_timeout", 7
    IDLE_TIMEOUT = "idle_timeout", 8
    MALFORMED_RESPONSE = "malformed_response", 9
    AUTH = "auth", 10
    MODEL_NOT_FOUND = "model_not_found", 11
    PERMISSION = "permission", 12
    INVALID_REQUEST = "invalid_request", 13
    CONTEXT_OVERFLOW = "context_overflow", 14
    CONTENT_FILTER = "content_filter", 15
    UNSUPPORTED = "unsupported", 16
    CANCELLED = "cancelled", 17
    DEADLINE = "deadline", 18
    SATURATED = "saturated", 19
    INTERNAL = "internal", 20

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.code <= ErrorClass.MALFORMED_RESPONSE.code or self is ErrorClass.SATURATED


AXES: Mapping[str, type[Axis]] = {
    axis.__name__.lower(): axis for axis in (Artifact, Capability, ErrorClass, Family, Feature, Kind, Modality)
}
"""Every axis by its name in the lock file."""


def code_of(axis: type[Axis], value: str) -> int | None:
    """The locked code of a value, or None for a member a plugin brought along, which travels by name."""
    for member in axis:
        if member.value == value:
            return member.code
    return None


def locked_codes() -> dict[str, dict[str, int]]:
    """The committed codes: axis name -> value -> code."""
    text = resources.files("vsr_core").joinpath("taxonomy.lock.json").read_text(encoding="utf-8")
    axes: dict[str, dict[str, int]] = json.loads(text)["axes"]
    return axes


def drift(
    locked: Mapping[str, Mapping[str, int]], current: Mapping[str, Iterable[tuple[str, int]]] | None = None
) -> list[str]:
    """How the axes differ from the lock, one line each; empty where they agree.

    :param locked: what was promised.
    :param current: axis name -> (value, code) pairs; the enums of this module by default.
    """
    actual = (
        {name: dict(pairs) for name, pairs in current.items()}
        if current is not None
        else {name: {member.value: member.code for member in axis} for name, axis in AXES.items()}
    )
    lines: list[str] = []
    for axis in sorted({*locked, *actual}):
        lines.extend(_axis_drift(axis, locked.get(axis, {}), actual.get(axis, {})))
    return lines


def _axis_drift(axis: str, locked: Mapping[str, int], actual: Mapping[str, int]) -> list[str]:
    lines = [
        f"{axis}: {value!r} is locked to {code} and was removed"
        for value, code in locked.items()
        if value not in actual
    ]
    lines += [
        f"{axis}: {value!r} is locked to {locked[value]} and now says {code}"
        for value, code in actual.items()
        if value in locked and locked[value] != code
    ]
    highest = max(locked.values(), default=0)
    lines += [
        f"{axis}: {value!r} is new: append it to the lock with code {max(highest + 1, code)}"
        if code > highest
        else f"{axis}: {value!r} is new and reuses code {code}; new codes start at {highest + 1}"
        for value, code in actual.items()
        if value not in locked
    ]
    if len(set(actual.values())) != len(actual):
        lines.append(f"{axis}: two values share one code")
    return lines
