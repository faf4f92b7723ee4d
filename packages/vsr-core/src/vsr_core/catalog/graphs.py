"""Compiled graphs by the names of their files: where they lie, which are quantised, which leave at an earlier layer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

__all__ = ["SUFFIXES", "exit_graphs", "exit_layer", "find_graphs", "is_graph", "is_quantized", "lonely_graphs"]

SUFFIXES = (".onnx", ".xml")

_QUANTIZED = re.compile(r".*[_.-](quantized|q?u?int[48]|q[48](f16)?|bnb4)([_.-](avx\w*|vnni|arm64|quantized))*")
"""As the exporters of sentence-transformers and transformers.js name quantised graphs."""

_EXIT = re.compile(r"(?P<stem>.+)_layer_(?P<layer>[1-9]\d*)")
_EXIT_FOLDER = re.compile(r"layer-([1-9]\d*)")


def is_graph(name: str) -> bool:
    """Whether a weight file is a graph for ONNX Runtime or OpenVINO."""
    return name.endswith(SUFFIXES)


def is_quantized(name: str) -> bool:
    """Whether a graph is quantised, by the end of its name, such as ``_quantized``, ``_int8`` or ``_qint8_avx512``."""
    return _QUANTIZED.fullmatch(PurePosixPath(name).stem) is not None


def exit_layer(name: str) -> int | None:
    """The layer a graph ends at, for ``layer-<N>/model.onnx`` and ``model_layer_<N>.onnx``; None for any other."""
    path = PurePosixPath(name)
    found = _EXIT_FOLDER.fullmatch(path.parent.name)
    if found is not None:
        return int(found[1])
    found = _EXIT.fullmatch(path.stem)
    return int(found["layer"]) if found is not None else None


def exit_graphs(weights: Iterable[str], layers: int) -> dict[int, str]:
    """The graph to run for each layer a model can be left at, rising; ``layers`` is the native depth.

    :param weights: the weight files of a model, such as ``ModelSpec.weights``.
    """
    found = {exit_layer(name) or layers: name for name in weights if is_graph(name)}
    return dict(sorted(found.items()))


def find_graphs(
    names: Collection[str], prefix: str, *, suffix: str, folder: str, preferred: tuple[str, ...], quantized: bool
) -> tuple[str, ...] | None:
    """The graphs of one form, the one of the native depth first; empty where several could be meant, None without any.

    :param names: the files of the model, relative.
    :param prefix: ``""``, or the subfolder of the transformer with a slash.
    :param folder: the subfolder in which graphs may lie as well.
    :param preferred: names that are meant where there are several.
    :param quantized: whether to look for quantised graphs, or for all others.
    """
    places = tuple(dict.fromkeys((prefix, f"{prefix}{folder}/", "", f"{folder}/")))
    graphs = [
        name
        for name in sorted(names)
        if name.endswith(suffix)
        and _place(name) in places
        and "tokenizer" not in name
        and (suffix != ".xml" or f"{name[:-4]}.bin" in names)
        and is_quantized(name) is quantized
    ]
    whole = [name for name in graphs if exit_layer(name) is None]
    chosen = next((place + name for place in places for name in preferred if place + name in whole), None)
    if chosen is None and len(whole) == 1:
        chosen = whole[0]
    if chosen is None:
        return _exits_alone(graphs) if graphs and not whole else () if graphs else None
    return (chosen, *(name for name in _by_layer(graphs) if _exit_of(name) == chosen))


def lonely_graphs(names: Collection[str]) -> tuple[str, ...]:
    """OpenVINO's graphs without the ``.bin`` that holds their weights, sorted; tokenizers of its own are none."""
    graphs = (name for name in sorted(names) if name.endswith(".xml") and "tokenizer" not in name)
    return tuple(name for name in graphs if f"{name.removesuffix('.xml')}.bin" not in names)


def _exits_alone(graphs: Iterable[str]) -> tuple[str, ...]:
    """Graphs that are exits of one model, deepest first; none where they are of several."""
    deepest_first = _by_layer(graphs)[::-1]
    return tuple(deepest_first) if len({_exit_of(name) for name in deepest_first}) == 1 else ()


def _by_layer(graphs: Iterable[str]) -> list[str]:
    return sorted((name for name in graphs if exit_layer(name) is not None), key=lambda name: exit_layer(name) or 0)


def _place(name: str) -> str:
    """The folder a graph lies in, with a slash; that of an exit is the one its own folder lies in."""
    parent = PurePosixPath(name).parent
    if _EXIT_FOLDER.fullmatch(parent.name):
        parent = parent.parent
    return "" if parent == PurePosixPath() else f"{parent.as_posix()}/"


def _exit_of(name: str) -> str | None:
    """The graph of the native depth that an exit belongs to, whether there is one or not."""
    path = PurePosixPath(name)
    if _EXIT_FOLDER.fullmatch(path.parent.name):
        return _place(name) + path.name
    found = _EXIT.fullmatch(path.stem)
    return f"{_place(name)}{found['stem']}{path.suffix}" if found is not None else None
