"""Which settings of a LoRA adapter are computed here; each that is not is refused by name.

What there is to set is that of ``LoraConfig`` of PEFT 0.21.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from .documents import Document

__all__ = ["TASKS_WITH_CLASSIFIER", "adapter_problems"]

_MERGE: Final = "merge it with PEFT (merge_and_unload) and serve the merged model"

_STRUCTURAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "alora_invocation_tokens": "switches the adapter on within a text",
        "arrow_config": "chooses among several adapters",
        "ensure_weight_tying": "ties the adapter to other weights",
        "fan_in_fan_out": "is for layers whose weight is [in, out], and those of encoders are [out, in]",
        "kasa_config": "changes the base's own weights",
        "layer_replication": "adds layers",
        "lora_bias": "adds a bias to the change",
        "megatron_config": "is for layers that are split over processes",
        "monteclora_config": "draws weights at random",
        "target_parameters": "changes other parameters than linear layers",
        "trainable_token_indices": "changes the token embedding",
        "use_bdlora": "changes layers block by block",
        "use_dora": "scales the base's own weights (DoRA), which other adapters share",
        "use_qalora": "pools the inputs of layers",
        "velora_config": "changes how layers compute",
    }
)
"""Settings that change the mathematics when they are on; off is null, false or empty."""

_READ: Final = frozenset(
    {
        "alpha_pattern",
        "base_model_name_or_path",
        "bias",
        "exclude_modules",
        "init_lora_weights",
        "layers_pattern",
        "layers_to_transform",
        "lora_alpha",
        "modules_to_save",
        "peft_type",
        "r",
        "rank_pattern",
        "revision",
        "target_modules",
        "task_type",
        "use_rslora",
    }
)
_WITHOUT_EFFECT: Final = frozenset(
    {
        "auto_mapping",
        "corda_config",
        "eva_config",
        "inference_mode",
        "loftq_config",
        "lora_dropout",
        "lora_ga_config",
        "megatron_core",
        "peft_version",
        "qalora_group_size",
        "runtime_config",
    }
)
"""Settings of training, of the start of training, or of another setting that is itself refused."""

_PLAIN_STARTS: Final = (True, False, None, "gaussian", "eva", "orthogonal")
"""Values of ``init_lora_weights`` that leave the base's own weights as they are."""

_TASKS: Final = ("SEQ_CLS", "TOKEN_CLS", "FEATURE_EXTRACTION", "CAUSAL_LM")
TASKS_WITH_CLASSIFIER: Final = ("SEQ_CLS", "TOKEN_CLS")
_SAVED: Final = ("classifier", "score", "head", "pooler", "pre_classifier")
"""What an adapter may bring whole: the parts of a head."""


def adapter_problems(document: Document) -> tuple[str, ...]:
    """Why an adapter with this configuration cannot be served, one sentence each with the way out; empty where it can."""
    kind = document.values.get("peft_type")
    if kind != "LORA":
        return (f"{document.path.name}: peft_type {kind!r} is not supported, only 'LORA'; {_MERGE}",)
    found = [*_malformed(document), *_structural(document), *_semantic(document)]
    return tuple(f"{document.path.name}: {problem}" for problem in found)


def _malformed(document: Document) -> list[str]:
    """Values of the wrong type or size."""
    values = document.values
    problems = []
    if not _is_count(values.get("r")):
        problems.append(f"'r' must be a whole number above zero, not {values.get('r')!r}")
    if not _is_scale(values.get("lora_alpha")):
        problems.append(f"'lora_alpha' must be a number above zero, not {values.get('lora_alpha')!r}")
    for key, is_right, wanted in (
        ("rank_pattern", _is_count, "whole numbers"),
        ("alpha_pattern", _is_scale, "numbers"),
    ):
        pattern = values.get(key) or {}
        if not isinstance(pattern, dict) or not all(map(is_right, pattern.values())):
            problems.append(f"{key!r} must be an object of {wanted} above zero, not {pattern!r}")
        else:
            problems += [f"{key!r}: {one!r} is no regular expression" for one in pattern if not _compiles(one)]
    layers = values.get("layers_to_transform")
    if not all(map(_is_index, layers if isinstance(layers, list) else [] if layers is None else [layers])):
        problems.append(f"'layers_to_transform' must be layer numbers from 0, not {layers!r}")
    problems += [problem for key in _MODULE_KEYS for problem in _module_problems(values.get(key), key)]
    for key in ("task_type", "base_model_name_or_path", "revision"):
        if not isinstance(values.get(key), str | None):
            problems.append(f"{key!r} must be a string, not {values.get(key)!r}")
    if not isinstance(values.get("use_rslora"), bool | None):
        problems.append(f"'use_rslora' must be true or false, not {values.get('use_rslora')!r}")
    return problems


_MODULE_KEYS: Final = ("target_modules", "exclude_modules", "layers_pattern", "modules_to_save")


def _module_problems(value: Any, key: str) -> list[str]:
    names = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(name, str) for name in names) or (key == "modules_to_save" and isinstance(value, str)):
        return [f"{key!r} must be a list of names, not {value!r}"]
    patterns = names if isinstance(value, str) or key == "layers_pattern" else []
    return [f"{key!r}: {pattern!r} is no regular expression" for pattern in patterns if not _compiles(pattern)]


def _structural(document: Document) -> list[str]:
    """Settings that are on and not computed here, known or not."""
    problems = []
    for key, value in document.values.items():
        if not value or key in _READ or key in _WITHOUT_EFFECT:
            continue
        why = _STRUCTURAL.get(key, "is a setting that is not known here")
        problems.append(f"{key}={_shown(value)} {why}; {_MERGE}")
    return problems


def _semantic(document: Document) -> list[str]:
    """Settings that are read, with values that are not computed here or contradict one another."""
    values = document.values
    problems = []
    if (bias := values.get("bias", "none")) not in ("none", None):
        problems.append(f"bias={bias!r} replaces biases of the base, which other adapters share; {_MERGE}")
    if (start := values.get("init_lora_weights")) not in _PLAIN_STARTS:
        problems.append(
            f"init_lora_weights={start!r} starts from changed base weights; save it again with PEFT's"
            f" 'path_initial_model_for_weight_conversion', or {_MERGE}"
        )
    if (task := values.get("task_type")) is not None and task not in _TASKS:
        problems.append(f"task_type {task!r} is none of {', '.join(_TASKS)}")
    saved = values.get("modules_to_save")
    problems += [
        f"modules_to_save has {name!r}, which is no part of a head ({', '.join(_SAVED)}); {_MERGE}"
        for name in (saved if isinstance(saved, list) else [])
        if name not in _SAVED
    ]
    if not values.get("target_modules"):
        problems.append("'target_modules' names no module")
    restricted = values.get("layers_to_transform") not in (None, [])
    if restricted and isinstance(values.get("target_modules"), str):
        problems.append("'layers_to_transform' does not go with a 'target_modules' that is a regular expression")
    if values.get("layers_pattern") and not restricted:
        problems.append("'layers_pattern' does not go without 'layers_to_transform'")
    return problems


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_scale(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
