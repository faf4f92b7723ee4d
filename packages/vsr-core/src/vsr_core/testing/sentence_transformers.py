"""The files sentence-transformers puts around an encoder, in the dialect of either generation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..contract import PoolingMode
from .tensors import TensorShape, draw, fan_in_deviation

__all__ = ["DenseShape", "Dialect", "write_sentence_transformer"]

Dialect = Literal["current", "older"]
"""Of configuration files: as the libraries write them now, or as most checkpoints on hubs have them."""

_FLAGS: Mapping[PoolingMode, str] = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len": "pooling_mode_mean_sqrt_len_tokens",
    "weighted_mean": "pooling_mode_weightedmean_tokens",
    "last": "pooling_mode_lasttoken",
}
_NAMES: Mapping[PoolingMode, str] = {
    "cls": "cls",
    "mean": "mean",
    "max": "max",
    "mean_sqrt_len": "mean_sqrt_len_tokens",
    "weighted_mean": "weightedmean",
    "last": "lasttoken",
}
_MODULES: Mapping[Dialect, Mapping[str, str]] = {
    "older": {
        name: f"sentence_transformers.models.{name}" for name in ("Transformer", "Pooling", "Dense", "Normalize")
    },
    "current": {
        "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
        "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
        "Dense": "sentence_transformers.base.modules.dense.Dense",
        "Normalize": "sentence_transformers.sentence_transformer.modules.normalize.Normalize",
    },
}
_ACTIVATIONS = {
    "identity": "torch.nn.modules.linear.Identity",
    "tanh": "torch.nn.modules.activation.Tanh",
    "relu": "torch.nn.modules.activation.ReLU",
    "gelu": "torch.nn.modules.activation.GELU",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseShape:
    """A dense module after pooling; it takes what the stage before it gives."""

    out: int
    activation: Literal["identity", "tanh", "relu", "gelu", "sigmoid"] = "tanh"
    bias: bool = True


def write_sentence_transformer(
    folder: Path,
    *,
    hidden: int,
    pooling: PoolingMode | Sequence[PoolingMode] = "mean",
    include_prompt: bool = True,
    dense: Sequence[DenseShape] = (),
    normalize: bool = True,
    prompts: Mapping[str, str] | None = None,
    default_prompt: str | None = None,
    max_tokens: int | None = None,
    dialect: Dialect = "current",
    seed: int = 0,
) -> Path:
    """Make a sentence-transformers folder of one that holds an encoder; returns the folder.

    :param hidden: width of the encoder.
    :param pooling: several modes are concatenated; the older dialect has an order of its own for them.
    :param max_tokens: ``max_seq_length``.
    """
    modes = (pooling,) if isinstance(pooling, str) else tuple(pooling)
    stages = [("Transformer", ""), ("Pooling", "1_Pooling")]
    stages += [("Dense", f"{index}_Dense") for index in range(2, 2 + len(dense))]
    if normalize:
        stages.append(("Normalize", f"{len(stages)}_Normalize"))
    types = _MODULES[dialect]
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": types[kind]}
        for index, (kind, path) in enumerate(stages)
    ]
    _write_json(folder / "modules.json", modules)
    _write_json(folder / "1_Pooling" / "config.json", _pooling(modes, hidden, dialect, include_prompt=include_prompt))
    width = hidden * len(modes)
    for index, module in enumerate(dense, start=2):
        _write_dense(folder / f"{index}_Dense", module, width, seed=seed + index)
        width = module.out
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens, "do_lower_case": False})
    if prompts is not None:
        settings = {"prompts": dict(prompts), "default_prompt_name": default_prompt}
        _write_json(folder / "config_sentence_transformers.json", settings)
    return folder


def _pooling(modes: Sequence[PoolingMode], hidden: int, dialect: Dialect, *, include_prompt: bool) -> dict[str, Any]:
    if dialect == "older":
        flags = {flag: mode in modes for mode, flag in _FLAGS.items()}
        return {"word_embedding_dimension": hidden, **flags, "include_prompt": include_prompt}
    named = [_NAMES[mode] for mode in modes]
    pooling_mode = named[0] if len(named) == 1 else named
    return {"embedding_dimension": hidden, "pooling_mode": pooling_mode, "include_prompt": include_prompt}


def _write_dense(folder: Path, module: DenseShape, width: int, *, seed: int) -> None:
    from safetensors.numpy import save_file

    settings = {
        "in_features": width,
        "out_features": module.out,
        "bias": module.bias,
        "activation_function": _ACTIVATIONS[module.activation],
    }
    _write_json(folder / "config.json", settings)
    shapes = [TensorShape("linear.weight", (module.out, width), "linear")]
    if module.bias:
        shapes.append(TensorShape("linear.bias", (module.out,), "bias"))
    save_file(draw(shapes, seed=seed, deviation=fan_in_deviation(1.0)), str(folder / "model.safetensors"))


def _write_json(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
