"""Reading the JSON files of a model's folder, with errors that name the file, and names that stay inside the folder."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import CheckpointError

__all__ = ["Document", "inside", "list_files", "model_folder", "read_document", "read_json"]

MAX_JSON_BYTES = 64 * 1024 * 1024
"""No configuration file of a model comes near this; a larger one is refused before it is read."""

_GRAPH_FOLDERS = frozenset({"onnx", "openvino"})
_EXIT_FOLDER = re.compile(r"layer-\d+")
"""A folder with the graph that ends at a layer; it lies in the model's folder or in that of its graphs."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON object and the file it was read from; its methods refuse values of the wrong type."""

    path: Path
    values: Mapping[str, Any]

    def integer(self, key: str) -> int | None:
        """A whole number, or None where the key is absent or null.

        :raises CheckpointError: any other value.
        """
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, "a whole number")
        return value

    def size(self, key: str) -> int | None:
        """A whole number above zero, or None where the key is absent or null."""
        value = self.integer(key)
        if value is not None and value < 1:
            raise self.error(key, "a whole number above zero")
        return value

    def text(self, key: str) -> str | None:
        """A string, or None where the key is absent or null."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(key, "a string")
        return value

    def flag(self, key: str) -> bool | None:
        """A boolean, or None where the key is absent or null."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(key, "true or false")
        return value

    def section(self, key: str) -> Document | None:
        """A JSON object within this one, or None where the key is absent or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(key, "an object")
        return Document(self.path, value)

    def items(self, key: str) -> tuple[Any, ...]:
        """The items of a list, none where the key is absent or null."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, list):
            raise self.error(key, "a list")
        return tuple(value or ())

    def error(self, key: str, wanted: str) -> CheckpointError:
        """The error for a value that is not what the key calls for."""
        return CheckpointError(f"{self.path}: {key!r} must be {wanted}, not {_shown(self.values.get(key))}")


def model_folder(path: Path) -> Path:
    """The folder of a model given by its folder or by one file in it; names in a spec are relative to it.

    A graph often lies in a subfolder (``onnx/model.onnx``) of the folder that has its ``config.json``.
    """
    if path.is_dir():
        return path
    for folder in path.parents:
        if (folder / "config.json").is_file():
            return folder
        if not (folder.name in _GRAPH_FOLDERS or _EXIT_FOLDER.fullmatch(folder.name)):
            break
    return path.parent


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    :raises CheckpointError: unreadable, too large, not UTF-8, or not JSON.
    """
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path}: {size} bytes are too many for a configuration file")
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise CheckpointError(f"{path}: not JSON: {error}") from None
    except RecursionError:
        raise CheckpointError(f"{path}: nested too deeply") from None


def read_document(folder: Path, name: str) -> Document | None:
    """A JSON object of the folder, or None where there is no such file.

    :raises CheckpointError: unreadable, not JSON, or not an object.
    """
    path = folder / name
    if not path.is_file():
        return None
    content = read_json(path)
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {_shown(content)}")
    return Document(path, content)


def inside(name: object, named_by: Path) -> str:
    """A file or folder name from a configuration file, normalised; ``""`` is the folder itself.

    :raises CheckpointError: a name that is no relative path or leaves the model's folder.
    """
    if not isinstance(name, str):
        raise CheckpointError(f"{named_by}: a path must be a string, not {_shown(name)}")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name:
        raise CheckpointError(f"{named_by}: the path {name!r} leaves the model's folder")
    return "" if path == PurePosixPath() else path.as_posix()


def list_files(folder: Path) -> frozenset[str]:
    """The files of a folder and of the folders in it, relative, in POSIX form; hidden ones are left out.

    Of the folders within those, only such as ``layer-6`` are looked into, which hold the graph of one layer.

    :raises CheckpointError: a folder that cannot be read.
    """
    try:
        return frozenset(_walk(folder))
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be read: {error.strerror or error}") from None


def _walk(folder: Path) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_file():
            yield entry.name
        elif entry.is_dir():
            for inner in entry.iterdir():
                if inner.is_file():
                    yield f"{entry.name}/{inner.name}"
                elif _EXIT_FOLDER.fullmatch(inner.name):
                    yield from (f"{entry.name}/{inner.name}/{one.name}" for one in inner.iterdir() if one.is_file())


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
