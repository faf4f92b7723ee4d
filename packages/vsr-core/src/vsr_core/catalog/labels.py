"""Label names in index order, from every kind of file that keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..contract import CatalogEntry
from ..errors import CheckpointError
from .documents import Document, model_folder, read_json

__all__ = [
    "LabelMap",
    "label_count",
    "labels_of_config",
    "load_labels",
    "names_problem",
    "placeholders",
    "stated_labels",
]

RESERVED = "classification_error"
"""A router answers this in place of a label when classifying failed; as a label it would hide that."""

_FORWARD = ("label_to_idx", "label_to_id", "label2id", "category_to_idx")
_INVERSE = ("idx_to_label", "id_to_label", "id2label", "idx_to_category")


@dataclass(frozen=True, slots=True)
class LabelMap:
    """Label names; the index of a label is its place."""

    labels: tuple[str, ...]


def load_labels(path: Path) -> LabelMap:
    """Read a label file.

    ``.json`` and ``.yaml`` files may hold ``label_to_idx``, ``label_to_id``, ``label2id`` or ``category_to_idx``,
    the inverse of either, both, a list of names, or ``labels`` as an object whose keys are the names in order. A
    ``.txt`` file has one name a line. ``config.json`` of a checkpoint is read for its ``id2label``.

    :raises CheckpointError: unreadable, of no known shape, indices that are not 0 to n-1, names that repeat, an
        inverse that disagrees, or the reserved name ``classification_error``.
    """
    content = _read(path)
    if isinstance(content, Mapping) and ("model_type" in content or "architectures" in content):
        named = labels_of_config(Document(path, content))
        if named is None:
            raise CheckpointError(f"{path}: has no label names, only placeholders; name a label file")
        return LabelMap(named)
    return LabelMap(_checked(path, _names(path, content)))


def labels_of_config(config: Document) -> tuple[str, ...] | None:
    """The names in ``id2label`` of a ``config.json``, or None where it has none or only :func:`placeholders`.

    :raises CheckpointError: indices that are not 0 to n-1, or names that repeat.
    """
    inverse = config.section("id2label")
    if inverse is None or not inverse.values:
        return None
    names = _in_order(config.path, "id2label", _by_index(config.path, "id2label", inverse.values))
    if names == placeholders(len(names)):
        return None
    return _checked(config.path, names)


def label_count(config: Document) -> int | None:
    """How many labels a ``config.json`` speaks of, named or not; None where it does not say."""
    inverse = config.section("id2label")
    return len(inverse.values) if inverse is not None else config.size("num_labels")


def placeholders(count: int) -> tuple[str, ...]:
    """What labels without names are called: ``LABEL_0``, ``LABEL_1`` and so on, as in transformers."""
    return tuple(f"LABEL_{index}" for index in range(count))


def names_problem(names: Sequence[str]) -> str | None:
    """What is wrong with these names as the labels of a model, in index order; None where nothing is."""
    if not names:
        return "no label is named"
    for index, name in enumerate(names):
        if not name.strip():
            return f"the label at index {index} is empty"
        if name == RESERVED:
            return f"the label at index {index} is {RESERVED!r}, a name reserved for failures"
        if name in names[:index]:
            return f"{name!r} is at index {names.index(name)} and at index {index}"
    return None


def stated_labels(entry: CatalogEntry, path: Path, relative_to: Path | None = None) -> tuple[str, ...] | None:
    """The labels an entry states, in itself or in a label file; None where it states none.

    :param path: the model's folder, or one file in it.
    :param relative_to: the folder against which a label file is looked up first; the model's own folder is second.
    :raises CheckpointError: a label file that is missing or wrong, or names that cannot be labels.
    """
    if isinstance(entry.labels, str):
        return load_labels(_find(entry.labels, path, relative_to)).labels
    if entry.labels is not None and (problem := names_problem(entry.labels)):
        raise CheckpointError(problem)
    return entry.labels


def _find(label_file: str, path: Path, relative_to: Path | None) -> Path:
    named = Path(label_file).expanduser()
    places = [folder / named for folder in (relative_to or Path.cwd(), model_folder(path))]
    for place in places:
        if place.is_file():
            return place
    raise CheckpointError(f"no label file {label_file!r}; looked at {places[0]} and {places[1]}")


def _read(path: Path) -> Any:
    if path.suffix not in (".yaml", ".yml", ".txt"):
        return read_json(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: not UTF-8 at byte {error.start}") from None
    if path.suffix == ".txt":
        return [line.strip() for line in text.splitlines() if line.strip()]
    from .plain_yaml import load_plain_yaml  # few label files are YAML, and every listing of plugins passes by here

    try:
        return load_plain_yaml(text)
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _names(path: Path, content: Any) -> tuple[str, ...]:
    if isinstance(content, list):
        return _listed(path, content)
    if not isinstance(content, Mapping):
        raise CheckpointError(f"{path}: expected a label map or a list of names")
    found: dict[str, tuple[str, ...]] = {}
    for key in (*_FORWARD, *_INVERSE):
        if isinstance(content.get(key), Mapping):
            by_index = (_inverted if key in _FORWARD else _by_index)(path, key, content[key])
            found[key] = _in_order(path, key, by_index)
    if found:
        return _agreed(path, found)
    labels = content.get("labels")
    if isinstance(labels, list):
        return _listed(path, labels)
    if isinstance(labels, Mapping) and labels:
        return _listed(path, list(labels))
    raise CheckpointError(f"{path}: has none of {', '.join((*_FORWARD, *_INVERSE))} and labels")


def _agreed(path: Path, found: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    first, names = next(iter(found.items()))
    for key, others in found.items():
        for index, (name, other) in enumerate(zip(names, others, strict=False)):
            if name != other:
                raise CheckpointError(f"{path}: index {index} is {name!r} by {first} and {other!r} by {key}")
        if len(names) != len(others):
            raise CheckpointError(f"{path}: {first} has {len(names)} labels and {key} {len(others)}")
    return names


def _listed(path: Path, names: Sequence[Any]) -> tuple[str, ...]:
    for index, name in enumerate(names):
        if not isinstance(name, str):
            raise CheckpointError(f"{path}: the label at index {index} must be a string, not {name!r}")
    return tuple(names)


def _inverted(path: Path, key: str, forward: Mapping[Any, Any]) -> dict[int, Any]:
    by_index: dict[int, Any] = {}
    for name, value in forward.items():
        index = _index(path, key, value)
        if index in by_index:
            raise CheckpointError(f"{path}: {key} gives index {index} to both {by_index[index]!r} and {name!r}")
        by_index[index] = name
    return by_index


def _by_index(path: Path, key: str, inverse: Mapping[Any, Any]) -> dict[int, Any]:
    by_index: dict[int, Any] = {}
    for value, name in inverse.items():
        index = _index(path, key, value)
        if index in by_index:
            raise CheckpointError(f"{path}: {key} has index {index} twice")
        by_index[index] = name
    return by_index


def _index(path: Path, key: str, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise CheckpointError(f"{path}: {key} has {value!r} where an index should be")


def _in_order(path: Path, key: str, by_index: Mapping[int, Any]) -> tuple[str, ...]:
    for index in range(len(by_index)):
        if index not in by_index:
            raise CheckpointError(f"{path}: {key} has {len(by_index)} labels and none at index {index}")
    return _listed(path, [by_index[index] for index in range(len(by_index))])


def _checked(path: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    if problem := names_problem(names):
        raise CheckpointError(f"{path}: {problem}")
    return names
