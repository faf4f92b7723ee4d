"""The one shape in which a model is shown: listings, startup status, server and diagnostics all use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..taxonomy import Artifact, Capability, Feature, Modality
from .address import BackendId

__all__ = ["Choice", "FeatureState", "LoadState", "ModelInfo", "RuntimeInfo"]

LoadState = Literal["not_loaded", "loading", "ready", "draining", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something asked for and what it came to, with the reason where they differ or where ``auto`` decided."""

    requested: str
    actual: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureState:
    """Whether a feature is there, and why or why not."""

    feature: Feature
    supported: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What is known of one model on one backend; what is not known is None. Round-trips through JSON.

    :param adapter: the name of the catalog entry of the LoRA adapter, for an adapter.
    :param dimensions: the widths a request may ask for; ``default_dimensions`` is what it gets unasked.
    :param exit_layers: the depths a request may ask for; ``default_layer`` is what it gets unasked.
    :param advertised_max_tokens: what the checkpoint claims; ``max_tokens`` is the limit in force.
    :param compatibility_key: two models may stand in for one another only where this is equal.
    :param base: for an adapter, what it sits on; ``adapters`` are the names of those loaded on a base.
    :param shared_layers: for an adapter, how many layers of its base, from the first on, it leaves as they are.
    :param load_seconds: wall time of the load; ``loaded_at`` is Unix time; ``memory_bytes`` is what the weights take.
    """

    backend_id: BackendId
    adapter: str | None = None
    capabilities: tuple[Capability, ...] = ()
    family: str | None = None
    architecture: str | None = None
    artifact: Artifact | None = None
    modality: Modality | None = None
    native_dimensions: int | None = None
    dimensions: tuple[int, ...] = ()
    default_dimensions: int | None = None
    native_layers: int | None = None
    exit_layers: tuple[int, ...] = ()
    default_layer: int | None = None
    advertised_max_tokens: int | None = None
    max_tokens: int | None = None
    labels: tuple[str, ...] | None = None
    device: Choice | None = None
    provider: Choice | None = None
    dtype: Choice | None = None
    stored_dtype: str | None = None
    revision: str | None = None
    content_hash: str | None = None
    compatibility_key: str | None = None
    base: BackendId | None = None
    adapters: tuple[str, ...] = ()
    shared_layers: int | None = None
    features: tuple[FeatureState, ...] = ()
    state: LoadState = "not_loaded"
    state_reason: str | None = None
    load_seconds: float | None = None
    loaded_at: float | None = None
    memory_bytes: int | None = None
    source: str | None = None
    contributed_by: str | None = None
    metadata: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeInfo:
    """What a backend found when it looked at this host.

    :param usable: whether it can serve anything here; where not, ``reason`` says why.
    :param versions: distribution name -> version of what it runs on.
    :param devices: devices it could use now; ``providers`` likewise, for runtimes that have them.
    :param dtypes: dtypes it computes in natively here.
    """

    usable: bool
    reason: str | None = None
    versions: Mapping[str, str] | None = None
    devices: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
