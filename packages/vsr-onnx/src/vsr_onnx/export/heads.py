"""The classification heads of transformers' classes, taken apart into dense layer, activation, norm and classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

import torch
from vsr_core.catalog import HEAD_WEIGHTS, HeadLayout
from vsr_core.errors import CheckpointError

__all__ = ["HeadKind", "SourceHead", "read_head"]

HeadKind = Literal["sequence", "token"]
_Activation = Literal["tanh", "relu", "gelu", "gelu_new", "silu", "sigmoid"]

_SAME_AS: Final[Mapping[str, str]] = {
    "gelu_python": "gelu",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "swish": "silu",
}
"""Other names of the same formulas; ``gelu_fast`` rounds its constant a little earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Where the parts of a head are among a model's modules.

    :param activation: its name, or the key of the configuration that names it.
    """

    classifier: str = "classifier"
    dense: str | None = None
    activation: str | None = None
    norm: str | None = None


_ROBERTA = _Parts(dense="classifier.dense", activation="tanh", classifier="classifier.out_proj")
_BERT = _Parts(dense="bert.pooler.dense", activation="tanh")
_MODERN = _Parts(dense="head.dense", activation="classifier_activation", norm="head.norm")

_OF_SEQUENCES: Final[Mapping[str, _Parts]] = {
    "bert": _BERT,
    "minilm": _BERT,
    "roberta": _ROBERTA,
    "xlm_roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": _ROBERTA,
    "electra": _Parts(dense="classifier.dense", activation="gelu", classifier="classifier.out_proj"),
    "distilbert": _Parts(dense="pre_classifier", activation="relu"),
    "albert": _Parts(dense="albert.pooler", activation="tanh"),
    "deberta": _Parts(dense="pooler.dense", activation="pooler_hidden_act"),
    "modernbert": _MODERN,
    "mmbert": _MODERN,
}
"""As ``<Family>ForSequenceClassification`` of transformers computes them."""

_OF_TOKENS: Final[Mapping[str, _Parts]] = {"modernbert": _MODERN, "mmbert": _MODERN}
"""Those of the other families are a classifier alone."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceHead:
    """A head as it is exported; tensors are float32."""

    layout: HeadLayout
    tensors: Mapping[str, torch.Tensor]

    def save(self, folder: Path) -> None:
        """Write :data:`~vsr_core.catalog.HEAD_WEIGHTS`."""
        from safetensors.torch import save

        (folder / HEAD_WEIGHTS).write_bytes(save(dict(self.tensors)))


def read_head(model: Any, kind: HeadKind, family: str) -> SourceHead:
    """Take the head of a model of transformers apart.

    :raises CheckpointError: the head is not one an exported model can have.
    """
    parts = _OF_SEQUENCES[family] if kind == "sequence" else _OF_TOKENS.get(family, _Parts())
    tensors = dict(_named(model, parts.classifier, "classifier"))
    tensors.setdefault("classifier.bias", torch.zeros(len(tensors["classifier.weight"])))
    norm_eps = None
    if parts.dense is not None:
        tensors.update(_named(model, parts.dense, "dense"))
        _check_square(tensors["dense.weight"], family)
    if parts.norm is not None:
        tensors.update(_named(model, parts.norm, "norm"))
        norm_eps = float(model.get_submodule(parts.norm).eps)
    layout = HeadLayout(
        kind=kind,
        labels=len(tensors["classifier.weight"]),
        pool=_pool(model.config, family) if kind == "sequence" else None,
        dense=parts.dense is not None,
        activation=_activation(model.config, parts.activation) if parts.activation is not None else None,
        norm_eps=norm_eps,
    )
    return SourceHead(layout=layout, tensors=tensors)


def _named(model: Any, path: str, name: str) -> Mapping[str, torch.Tensor]:
    """The weight and, where there is one, the bias of a module, as they are called in the export."""
    found = model.get_submodule(path).named_parameters(recurse=False)
    return {f"{name}.{part}": tensor.detach().float().contiguous() for part, tensor in found}


def _check_square(weight: torch.Tensor, family: str) -> None:
    rows, columns = weight.shape
    if rows != columns:
        raise CheckpointError(
            f"the head of this {family!r} has a dense layer from {columns} to {rows} features; only one that keeps "
            "their number is exported"
        )


def _pool(config: Any, family: str) -> Literal["cls", "mean"]:
    if family not in ("modernbert", "mmbert"):
        return "cls"
    pooling = config.classifier_pooling
    if pooling not in ("cls", "mean"):
        raise CheckpointError(f"config.json: classifier_pooling {pooling!r} is not exported, only 'cls' and 'mean'")
    return cast("Literal['cls', 'mean']", pooling)


def _activation(config: Any, name: str) -> _Activation:
    stated = str(getattr(config, name, name))
    found = _SAME_AS.get(stated, stated)
    if found not in get_args(_Activation):
        raise CheckpointError(
            f"config.json: {name} {stated!r} is not exported, only {', '.join(get_args(_Activation))}"
        )
    return cast("_Activation", found)
