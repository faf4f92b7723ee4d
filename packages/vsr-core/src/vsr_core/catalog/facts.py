"""What is read from the files of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..contract import Activation, DenseSpec, PoolingSpec, SimilarityFunction
from ..taxonomy import Artifact, Capability, Modality
from .adapters import AdapterConfig

__all__ = ["CheckpointFacts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFacts:
    """Everything the files of a model say; None or empty where they are silent.

    :param refusals: why the model cannot be served as it is, one line each; empty where it can.
    :param model_type: from ``config.json``, known or not; ``family`` is the family it was recognised as.
    :param artifacts: the forms the folder holds weights in; ``artifact`` is the one these facts are about.
    :param capabilities: what the checkpoint is for by itself.
    :param servable: what an entry may state it is for, or None where the files do not say.
    :param native_dimensions: width of an embedding, should the checkpoint be asked for one.
    :param matryoshka: widths the files say the embedding may be cut to.
    :param exit_layers: the layers a graph has an output for, rising; empty where the weights can be left at any.
    :param label_count: outputs of the head.
    :param adapter: for an adapter, its configuration; None where that is refused.
    """

    refusals: tuple[str, ...] = ()
    model_type: str | None = None
    family: str | None = None
    architecture: str | None = None
    artifacts: tuple[Artifact, ...] = ()
    artifact: Artifact | None = None
    modality: Modality | None = None
    capabilities: tuple[Capability, ...] = ()
    servable: frozenset[Capability] | None = None
    hidden_size: int | None = None
    layers: int | None = None
    exit_layers: tuple[int, ...] = ()
    native_dimensions: int | None = None
    matryoshka: tuple[int, ...] = ()
    max_tokens: int | None = None
    advertised_max_tokens: int | None = None
    pooling: PoolingSpec | None = None
    normalize: bool | None = None
    dense: tuple[DenseSpec, ...] = ()
    prompts: Mapping[str, str] | None = None
    default_prompt: str | None = None
    similarity: SimilarityFunction | None = None
    labels: tuple[str, ...] | None = None
    label_count: int | None = None
    activation: Activation | None = None
    lowercase: bool | None = None
    weights: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    stored_dtype: str | None = None
    adapter: AdapterConfig | None = None
