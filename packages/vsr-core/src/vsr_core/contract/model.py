"""Models as configured (``CatalogEntry``), as understood (``ModelSpec``), and the families they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..taxonomy import Artifact, Capability, Modality

__all__ = [
    "Activation",
    "CatalogEntry",
    "DenseSpec",
    "FamilyDescriptor",
    "ModelSpec",
    "PoolingMode",
    "PoolingSpec",
    "SimilarityFunction",
]

PoolingMode = Literal["cls", "mean", "max", "mean_sqrt_len", "weighted_mean", "last"]
"""How token vectors become one vector, with the meanings of sentence-transformers."""

Activation = Literal["softmax", "sigmoid", "none"]
"""What turns logits into scores."""

SimilarityFunction = Literal["cosine", "dot", "euclidean", "manhattan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A model as an operator or a plugin names it; what is None is read from the files.

    :param source: where the weights are: a path, ``hf://org/name@revision``, ``pkg://package/path``.
    :param base: for a LoRA adapter, the name of the entry it sits on, with ``adapter`` as its source.
    :param backends: which backends may serve it, in order; empty means every installed one that can.
    :param labels: label names in index order, or the path of a label file.
    :param threshold: the score a result must reach to count as ``passed``.
    :param temperature: divides logits before the activation (calibration); 1.0 changes nothing.
    :param positive_labels: the labels for which ``passed`` may be true; empty means all.
    :param contributed_by: the plugin that brought the entry, or None for the configuration.
    """

    name: str
    source: str | None = None
    base: str | None = None
    adapter: str | None = None
    backends: tuple[str, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    family: str | None = None
    artifact: Artifact | None = None
    modality: Modality | None = None
    dimensions: tuple[int, ...] = ()
    layers: tuple[int, ...] = ()
    max_tokens: int | None = None
    pooling: tuple[PoolingMode, ...] = ()
    normalize: bool | None = None
    prompts: Mapping[str, str] | None = None
    default_prompt: str | None = None
    labels: tuple[str, ...] | str | None = None
    threshold: float | None = None
    temperature: float = 1.0
    positive_labels: tuple[str, ...] = ()
    metadata: Mapping[str, str] | None = None
    contributed_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingSpec:
    """Pooling as the checkpoint states it; several modes are concatenated in this order."""

    modes: tuple[PoolingMode, ...]
    include_prompt: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseSpec:
    """A dense module after pooling: ``activation(x @ weight.T + bias)``; ``path`` holds the weights."""

    path: str
    in_features: int
    out_features: int
    bias: bool = True
    activation: Literal["identity", "tanh", "relu", "gelu", "sigmoid"] = "tanh"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model as its files, and its entry's statements where the files are silent, describe it.

    :param architecture: the class name in ``config.json``, where there is one.
    :param hidden_size: width of a token vector; ``layers`` is the native depth.
    :param native_dimensions: width of the answer before any Matryoshka truncation.
    :param dimensions: the widths a request may ask for, native included, rising.
    :param exit_layers: the layers a request may ask for, native depth included, rising.
    :param max_tokens: the effective limit, special tokens included; ``advertised_max_tokens`` is what is claimed.
    :param weights: weight files, relative to the model's folder; ``files`` are all files the model is made of.
    :param content_hash: SHA-256 over the names and contents of ``files``, hex.
    :param stored_dtype: the dtype of the weights on disk.
    """

    capabilities: tuple[Capability, ...]
    family: str
    artifact: Artifact
    modality: Modality = Modality.TEXT
    architecture: str | None = None
    hidden_size: int | None = None
    layers: int | None = None
    native_dimensions: int | None = None
    dimensions: tuple[int, ...] = ()
    exit_layers: tuple[int, ...] = ()
    max_tokens: int | None = None
    advertised_max_tokens: int | None = None
    pooling: PoolingSpec | None = None
    normalize: bool | None = None
    dense: tuple[DenseSpec, ...] = ()
    prompts: Mapping[str, str] | None = None
    default_prompt: str | None = None
    similarity: SimilarityFunction = "cosine"
    labels: tuple[str, ...] | None = None
    activation: Activation | None = None
    lowercase: bool | None = None
    weights: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    revision: str | None = None
    content_hash: str | None = None
    stored_dtype: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyDescriptor:
    """A model family: how its checkpoints are recognised, and what serves them on which backend.

    :param contract: the contract version needed, such as ``"1.0"``.
    :param model_types: values of ``model_type`` in ``config.json`` that belong to it.
    :param architectures: class names in ``config.json`` with the capability each is for.
    :param pooling: the pooling of checkpoints that state none, or None where that is an error.
    :param positions_after_padding: whether learned positions are counted from after the padding id, as in RoBERTa, so
        that the first of them are never used.
    :param implementations: backend name -> ``"module:attribute"`` of what that backend needs for the family;
        each backend documents the protocol of that attribute.
    """

    name: str
    contract: str
    summary: str = ""
    model_types: tuple[str, ...] = ()
    architectures: Mapping[str, Capability] | None = None
    pooling: PoolingMode | None = None
    positions_after_padding: bool = False
    implementations: Mapping[str, str] | None = None
