"""What ``adapter_config.json`` of a LoRA adapter says: which modules it changes, how much, and what it was made for.

The rules by which a configuration names modules are those of PEFT 0.21 (``check_target_module_exists`` and
``get_pattern_key``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self, TypeVar

from ..errors import CheckpointError
from .adapter_settings import TASKS_WITH_CLASSIFIER, adapter_problems
from .documents import Document
from .sources import HubSource, Source

__all__ = ["AdapterConfig", "base_problem"]

T = TypeVar("T")

_HUB_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterConfig:
    """A LoRA configuration, as far as it decides on what an adapter computes.

    :param task_type: as PEFT calls it, or None where it is not named.
    :param base_model: what it was trained on, as a hub name or a path, at ``revision`` where that is named.
    :param target_modules: the modules it changes: a regular expression, or names of which a module's own is the end.
    :param layers: the layers it is restricted to, counted from 0 as PEFT does; None for all.
    :param modules_to_save: the modules it brings whole.
    """

    task_type: str | None
    base_model: str | None
    revision: str | None
    rank: int
    alpha: float
    rslora: bool
    target_modules: str | tuple[str, ...]
    exclude_modules: str | tuple[str, ...]
    layers: tuple[int, ...] | None
    layers_pattern: tuple[str, ...]
    rank_pattern: Mapping[str, int]
    alpha_pattern: Mapping[str, float]
    modules_to_save: tuple[str, ...]

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read ``adapter_config.json``.

        :raises CheckpointError: whatever :func:`adapter_problems` tells.
        """
        problems = adapter_problems(document)
        if problems:
            raise CheckpointError("\n".join(problems), problems=list(problems))
        task = document.text("task_type")
        layers = document.values.get("layers_to_transform")
        saved = _names(document, "modules_to_save")
        if task in TASKS_WITH_CLASSIFIER:
            saved = tuple(dict.fromkeys((*saved, "classifier", "score")))  # as PEFT adds them when it loads
        return cls(
            task_type=task,
            base_model=document.text("base_model_name_or_path") or None,
            revision=document.text("revision") or None,
            rank=document.values["r"],
            alpha=float(document.values["lora_alpha"]),
            rslora=bool(document.flag("use_rslora")),
            target_modules=_pattern_or_names(document, "target_modules"),
            exclude_modules=_pattern_or_names(document, "exclude_modules"),
            layers=((layers,) if isinstance(layers, int) else tuple(layers)) if layers not in (None, []) else None,
            layers_pattern=_one_or_more(document, "layers_pattern"),
            rank_pattern=MappingProxyType(dict(document.values.get("rank_pattern") or {})),
            alpha_pattern=MappingProxyType(dict(document.values.get("alpha_pattern") or {})),
            modules_to_save=saved,
        )

    def changes(self, module: str) -> bool:
        """Whether the adapter changes a module, by its full name in the model it was trained on."""
        if _is_named(module, self.exclude_modules) or self.saves(module):
            return False
        if not _is_named(module, self.target_modules):
            return False
        if self.layers is None:
            return True
        layer = self._layer(module)
        return layer is not None and layer in self.layers

    def saves(self, module: str) -> bool:
        """Whether the adapter brings a module whole."""
        return any(re.match(rf"(^|.*\.){re.escape(name)}($|\..*)", module) for name in self.modules_to_save)

    def rank_of(self, module: str) -> int:
        """The r of a module's change."""
        return _first_match(self.rank_pattern, module, self.rank)

    def scale_of(self, module: str) -> float:
        """What a module's change is multiplied by: alpha / r, or alpha / sqrt(r) with rsLoRA (Kalajdzievski 2023)."""
        rank = self.rank_of(module)
        return _first_match(self.alpha_pattern, module, self.alpha) / (math.sqrt(rank) if self.rslora else rank)

    def _layer(self, module: str) -> int | None:
        if not self.layers_pattern:
            match = re.match(r".*?\.[^.]*\.(?P<index>\d+)\.", module)
            return int(match["index"]) if match is not None else None
        for pattern in self.layers_pattern:
            match = re.match(rf"(?:^|.*?\.){pattern}\.(?P<index>\d+)\.", module)
            if match is not None:
                return int(match["index"])
        return None


def base_problem(config: AdapterConfig, source: Source, *, revision: str | None) -> str | None:
    """Why an adapter does not belong on a base from this source, or None where it does or nothing can be told.

    A base named by a path, on either side, cannot be compared; the shapes of its layers still are when it loads.

    :param revision: what the base's source resolved to, where that is known.
    """
    if not isinstance(source, HubSource) or config.base_model is None:
        return None
    named = config.base_model
    if _HUB_NAME.fullmatch(named) is None:
        return None
    alone = named.rpartition("/")[2]
    expected = source.repository.rpartition("/")[2] if alone == named else source.repository
    if named.lower() != expected.lower():
        return (
            f"base: the adapter was trained on {named!r}, the base is {source.repository!r}; "
            f"name an entry with the source 'hf://{named}' as its base"
        )
    pinned = config.revision
    if pinned in (None, "main") or revision is None:
        return None
    if pinned == source.revision or revision.startswith(str(pinned)):
        return None
    return (
        f"base: the adapter was trained on {named!r} at revision {pinned!r}, the base is at {revision!r}; "
        f"give the base the source 'hf://{source.repository}@{pinned}'"
    )


def _is_named(module: str, names: str | tuple[str, ...]) -> bool:
    if isinstance(names, str):
        return bool(names) and re.fullmatch(names, module) is not None
    return any(module == name or module.endswith(f".{name}") for name in names)


def _first_match(patterns: Mapping[str, T], module: str, default: T) -> T:
    found = (value for key, value in patterns.items() if re.match(rf"(.*\.)?({key})$", module))
    return next(found, default)


def _names(document: Document, key: str) -> tuple[str, ...]:
    return tuple(document.values.get(key) or ())


def _pattern_or_names(document: Document, key: str) -> str | tuple[str, ...]:
    value = document.values.get(key)
    return value if isinstance(value, str) else _names(document, key)


def _one_or_more(document: Document, key: str) -> tuple[str, ...]:
    value = document.values.get(key)
    return ((value,) if value else ()) if isinstance(value, str) else _names(document, key)
