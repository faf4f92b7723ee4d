"""What a sentence-transformers folder says: modules, pooling in both dialects, dense layers, prompts, similarity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ..contract import Activation, DenseSpec, PoolingMode, PoolingSpec, SimilarityFunction
from ..errors import CheckpointError
from .documents import Document, inside, read_document, read_json
from .safetensors_header import read_safetensors_header

__all__ = ["CE_ACTIVATIONS", "SentenceTransformer", "matryoshka_dimensions", "read_sentence_transformer"]

_MODES: Mapping[str, PoolingMode] = {
    "cls": "cls",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
    "weightedmean": "weighted_mean",
    "lasttoken": "last",
}
_FLAGS: Mapping[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weighted_mean",
    "pooling_mode_lasttoken": "last",
}
"""The dialect before version 6, in the order in which several true flags are concatenated."""

DenseActivation = Literal["identity", "tanh", "relu", "gelu", "sigmoid"]

_DENSE_ACTIVATIONS: Mapping[str, DenseActivation] = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}
CE_ACTIVATIONS: Mapping[str, Activation] = {
    "torch.nn.modules.linear.Identity": "none",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
    "torch.nn.modules.activation.Softmax": "softmax",
}
"""What a CrossEncoder may name as its activation."""

_TRANSFORMER_CONFIGS = tuple(
    f"sentence_{model}_config.json"
    for model in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
_TASKS = {"SentenceTransformer": "feature-extraction", "CrossEncoder": "sequence-classification"}


@dataclass(slots=True, kw_only=True)
class SentenceTransformer:
    """The settings of a folder with ``modules.json`` or ``config_sentence_transformers.json``; grows while it is read.

    :param base: the subfolder of the transformer, ``""`` for the folder itself.
    :param embeds: whether the modules end in a sentence embedding.
    :param in_features: width the first stage after the transformer expects, where it says so.
    """

    base: str = ""
    embeds: bool = False
    cross_encoder: bool = False
    activation: str | None = None
    pooling: PoolingSpec | None = None
    in_features: int | None = None
    normalize: bool | None = None
    dense: tuple[DenseSpec, ...] = ()
    prompts: Mapping[str, str] | None = None
    default_prompt: str | None = None
    similarity: SimilarityFunction | None = None
    max_tokens: int | None = None
    lowercase: bool | None = None
    matryoshka: tuple[int, ...] = ()
    files: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


def read_sentence_transformer(folder: Path) -> SentenceTransformer | None:
    """Read the folder's sentence-transformers files, or give None where it has none.

    What cannot be honoured, such as a module of an unknown type, is listed in ``refusals``.

    :raises CheckpointError: a malformed file, or a path that leaves the folder.
    """
    settings = read_document(folder, "config_sentence_transformers.json")
    has_modules = (folder / "modules.json").is_file()
    if settings is None and not has_modules:
        return None
    found = SentenceTransformer()
    if settings is not None:
        _read_settings(settings, found)
    if has_modules:
        _read_modules(folder, found)
    _read_transformer(folder, found)
    return found


def _read_settings(settings: Document, found: SentenceTransformer) -> None:
    found.files.append(settings.path.name)
    kind = settings.text("model_type") or "SentenceTransformer"
    found.cross_encoder = kind == "CrossEncoder"
    if kind not in _TASKS:
        found.refusals.append(f"{settings.path.name}: models of type {kind!r} are not supported")
    found.activation = settings.text("activation_fn") if found.cross_encoder else None
    prompts = settings.section("prompts")
    if prompts is not None and prompts.values:
        found.prompts = {name: text for name in prompts.values if (text := prompts.text(name)) is not None}
    found.default_prompt = settings.text("default_prompt_name")
    if found.default_prompt is not None and found.default_prompt not in (found.prompts or {}):
        found.refusals.append(
            f"{settings.path.name}: default_prompt_name is {found.default_prompt!r}, which is none of its prompts"
        )
    similarity = settings.text("similarity_fn_name")
    if similarity is not None and similarity not in get_args(SimilarityFunction):
        found.refusals.append(f"{settings.path.name}: the similarity function {similarity!r} is not supported")
    elif similarity is not None:
        found.similarity = cast("SimilarityFunction", similarity)
    found.matryoshka = matryoshka_dimensions(settings)


def matryoshka_dimensions(document: Document) -> tuple[int, ...]:
    """The widths a configuration file says its embeddings may be cut to."""
    for key in ("matryoshka_dimensions", "matryoshka_dims"):
        widths = document.items(key)
        if any(type(width) is not int or width < 1 for width in widths):
            raise document.error(key, "a list of whole numbers above zero")
        if widths:
            return tuple(sorted(set(widths)))
    return ()


def _read_modules(folder: Path, found: SentenceTransformer) -> None:
    path = folder / "modules.json"
    modules = read_json(path)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise CheckpointError(f"{path}: expected a list of modules")
    found.files.append("modules.json")
    stages: list[str] = []
    for module in modules:
        kind, place = module.get("type"), inside(module.get("path", ""), path)
        name = _module_class(kind)
        if name is None:
            found.refusals.append(f"modules.json: the module type {kind!r} is not supported")
            continue
        stages.append(name)
        _read_module(folder, name, place, found)
    found.normalize = "Normalize" in stages
    found.embeds = "Pooling" in stages
    if not found.refusals:
        _check_order(stages, found)


def _module_class(kind: Any) -> str | None:
    """The class name of a module that is honoured; the modules it lived in changed between versions."""
    if not isinstance(kind, str) or not kind.startswith("sentence_transformers."):
        return None
    name = kind.rpartition(".")[2]
    return name if name in ("Transformer", "Pooling", "Dense", "Normalize", "Dropout") else None


def _check_order(stages: list[str], found: SentenceTransformer) -> None:
    order = [name for name in stages if name != "Dropout"]
    dense = order.count("Dense")
    if found.cross_encoder and order == ["Transformer"]:
        found.normalize = None
        return
    expected = ["Transformer", "Pooling", *["Dense"] * dense, *(["Normalize"] if found.normalize else [])]
    if order != expected:
        found.refusals.append(
            f"modules.json: the order {' > '.join(stages) or 'of no modules'} is not supported; "
            "it has to be Transformer > Pooling > Dense > Normalize, the last two as needed"
        )


def _read_module(folder: Path, name: str, place: str, found: SentenceTransformer) -> None:
    if name == "Transformer":
        found.base = place
    elif name in ("Pooling", "Dense"):
        config = read_document(folder, f"{place}/config.json")
        if config is None:
            raise CheckpointError(f"{folder / place}: modules.json names it, and it has no config.json")
        found.files.append(f"{place}/config.json")
        if name == "Pooling":
            _read_pooling(config, found)
        else:
            _read_dense(folder, place, config, found=found)


def _read_pooling(config: Document, found: SentenceTransformer) -> None:
    where = f"{config.path.parent.name}/config.json"
    include = config.flag("include_prompt")
    stated = config.values.get("pooling_mode")
    named = [stated] if isinstance(stated, str) else list(config.items("pooling_mode"))
    unknown = [name for name in named if not isinstance(name, str) or name not in _MODES]
    unknown += [key for key, value in config.values.items() if _is_unknown_flag(key) and value]
    if unknown:
        found.refusals.append(f"{where}: the pooling mode {unknown[0]!r} is not supported")
        return
    modes = tuple(_MODES[name] for name in named) or tuple(mode for key, mode in _FLAGS.items() if config.flag(key))
    if modes:
        found.pooling = PoolingSpec(modes=modes, include_prompt=True if include is None else include)
    found.in_features = config.size("embedding_dimension") or config.size("word_embedding_dimension")


def _is_unknown_flag(key: str) -> bool:
    return key.startswith("pooling_mode_") and key not in _FLAGS


def _read_dense(folder: Path, place: str, config: Document, *, found: SentenceTransformer) -> None:
    activation = config.text("activation_function") or "torch.nn.modules.activation.Tanh"
    width_in, width_out = config.size("in_features"), config.size("out_features")
    bias = config.flag("bias")
    weights = f"{place}/model.safetensors"
    where = f"{place}/config.json"
    if width_in is None or width_out is None:
        raise CheckpointError(f"{config.path}: needs 'in_features' and 'out_features'")
    if activation not in _DENSE_ACTIVATIONS:
        found.refusals.append(f"{where}: the activation {activation!r} is not supported")
    if config.flag("use_residual"):
        found.refusals.append(f"{where}: a residual connection is not supported")
    if {config.text("module_input_name"), config.text("module_output_name")} - {None, "sentence_embedding"}:
        found.refusals.append(f"{where}: a dense layer on anything but the sentence embedding is not supported")
    if not (folder / weights).is_file():
        found.refusals.append(f"{place}: has no model.safetensors; pickled weights are refused")
        return
    found.files.append(weights)
    _check_dense(folder / weights, width_in, width_out, bias=bias is not False)
    found.dense += (
        DenseSpec(
            path=weights,
            in_features=width_in,
            out_features=width_out,
            bias=bias is not False,
            activation=_DENSE_ACTIVATIONS.get(activation, "tanh"),
        ),
    )


def _check_dense(path: Path, width_in: int, width_out: int, *, bias: bool) -> None:
    tensors = read_safetensors_header(path)
    expected: dict[str, tuple[int, ...]] = {"linear.weight": (width_out, width_in)}
    if bias:
        expected["linear.bias"] = (width_out,)
    if {name: tensor.shape for name, tensor in tensors.items()} != expected:
        raise CheckpointError(f"{path}: its tensors are not those its config.json describes")


def _read_transformer(folder: Path, found: SentenceTransformer) -> None:
    prefix = f"{found.base}/" if found.base else ""
    for name in _TRANSFORMER_CONFIGS:
        config = read_document(folder, prefix + name)
        if config is None:
            continue
        found.files.append(prefix + name)
        found.max_tokens = config.size("max_seq_length")
        found.lowercase = config.flag("do_lower_case")
        task = config.text("transformer_task")
        expected = _TASKS["CrossEncoder" if found.cross_encoder else "SentenceTransformer"]
        if task is not None and task != expected:
            found.refusals.append(f"{prefix}{name}: the transformer task {task!r} is not supported here")
        return
