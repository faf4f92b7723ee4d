"""Reading a configuration into a plain tree of mappings, lists and scalars, remembering the line of every key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from ..errors import ConfigError
from .origin import KeyPath, Origin, Problem
from .tree import MAX_DEPTH, TooMuchError, TreeBuilder, check_size, compose, yaml_reason

__all__ = ["MAX_BYTES", "Document", "read_document"]

MAX_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A configuration as it was written.

    :param path: the file, or None for a mapping.
    :param problems: what is wrong with the writing although it can be read: a key given twice, a tag.
    :param failed: the keys whose value is missing for it.
    """

    path: Path | None
    data: Mapping[str, Any] = field(repr=False)
    origin: Origin
    problems: tuple[Problem, ...] = ()
    failed: frozenset[KeyPath] = frozenset()


def read_document(source: Path | str | Mapping[str, Any] | None) -> Document:
    """Read a YAML or JSON file, or take a mapping as it is; None is an empty configuration.

    :raises ConfigError: the file cannot be read at all.
    """
    if source is None or isinstance(source, Mapping):
        return _from_mapping(source or {})
    path = Path(source).absolute()
    label = _label(path)
    text = _read_text(path, label)
    return _from_json(path, label, text) if path.suffix == ".json" else _from_yaml(path, label, text)


def _label(path: Path) -> str:
    """The path as a user in this folder would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _read_text(path: Path, label: str) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"the configuration file {label!r} does not exist") from None
    except IsADirectoryError:
        raise ConfigError(f"{label!r} is a folder; name the configuration file in it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a file name"
        raise ConfigError(f"the configuration file {label!r} cannot be read: {reason.lower()}") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"the configuration file {label!r} is larger than {MAX_BYTES // 1024} KiB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"the configuration file {label!r} is not UTF-8 at byte {error.start}") from None


def _unreadable(label: str, line: int | None, reason: str) -> ConfigError:
    problem = str(Problem(where="", message=reason, code="syntax", source=label, line=line))
    return ConfigError(f"1 problem in {label}\n{problem}", problems=[problem])


def _not_a_mapping(label: str, data: object) -> ConfigError:
    return _unreadable(label, None, f"the configuration is a {_SHAPES.get(type(data), 'single value')}, not a mapping")


_SHAPES: Final[Mapping[type, str]] = {list: "list", str: "text", bool: "truth value", int: "number", float: "number"}


def _from_yaml(path: Path, label: str, text: str) -> Document:
    builder = TreeBuilder(label)
    try:
        node = compose(text)
        data = {} if node is None else builder.build(node, ())
    except TooMuchError as error:
        raise _unreadable(label, None, str(error)) from None
    except yaml.YAMLError as error:
        raise _unreadable(label, *yaml_reason(error)) from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise _not_a_mapping(label, data)
    return Document(
        path=path,
        data=data,
        origin=Origin(label=label, lines=builder.lines),
        problems=tuple(builder.problems),
        failed=frozenset(builder.failed),
    )


def _from_json(path: Path, label: str, text: str) -> Document:
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen:
                repeated.append(key)
            seen.setdefault(key, value)
        return seen

    try:
        data = json.loads(text, object_pairs_hook=unique) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise _unreadable(label, error.lineno, f"not valid JSON: {error.msg.lower()}") from None
    except ValueError:
        raise _unreadable(label, None, "the configuration has a number of too many digits") from None
    except RecursionError:
        raise _unreadable(label, None, f"the configuration is nested deeper than {MAX_DEPTH} levels") from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise _not_a_mapping(label, data)
    origin = Origin(label=label, lines=_outline(data, label) | _json_lines(text))
    problems = tuple(
        origin.problem((), f"the key {key!r} is given twice in one object", code="syntax") for key in repeated
    )
    return Document(path=path, data=data, origin=origin, problems=problems)


def _json_lines(text: str) -> dict[KeyPath, int | None]:
    """The line of every key, read by the YAML composer: JSON is YAML but for tabs, which JSON has no use for."""
    builder = TreeBuilder("")
    try:
        node = compose(text.replace("\t", " "))
        if node is not None:
            builder.build(node, ())
    except yaml.YAMLError:
        return {}
    return builder.lines


def _from_mapping(source: Mapping[str, Any]) -> Document:
    label = "config"
    lines = _outline(source, label)
    data = _plain(source)
    return Document(path=None, data=data, origin=Origin(label=label, lines=lines))


def _outline(data: object, label: str) -> dict[KeyPath, int | None]:
    """Every key path of a tree, without lines.

    :raises ConfigError: a key that is no text, or too much or too deep a tree.
    """
    lines: dict[KeyPath, int | None] = {}
    pending: list[tuple[KeyPath, object]] = [((), data)]
    while pending:
        path, value = pending.pop()
        lines[path] = None
        try:
            check_size(len(lines), len(path))
        except TooMuchError as error:
            raise _unreadable(label, None, str(error)) from None
        if isinstance(value, Mapping):
            for key, item in value.items():
                if not isinstance(key, str):
                    where = Origin(label=label, lines=lines).problem(path, f"the key {key!r} is no text", code="syntax")
                    raise ConfigError(f"1 problem in {label}\n{where}", problems=[str(where)])
                pending.append(((*path, key), item))
        elif isinstance(value, list | tuple):
            pending.extend(((*path, index), item) for index, item in enumerate(value))
    return lines


def _plain(value: Any) -> Any:
    """A tree of dicts, lists and scalars, none of it shared with the caller's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
