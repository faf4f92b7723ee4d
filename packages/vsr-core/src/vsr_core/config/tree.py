"""From YAML text to plain values with the line of every key, within bounds, and with the words of YAML 1.2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from .origin import KeyPath, Origin, Problem

__all__ = ["MAX_DEPTH", "MAX_NODES", "TooMuchError", "TreeBuilder", "check_size", "compose", "yaml_reason"]

MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 64

_YAML: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset(_YAML + name for name in ("str", "timestamp", "value", "merge"))


class TooMuchError(yaml.YAMLError):
    """The document is larger or deeper than any configuration."""


class _Composer(yaml.SafeLoader):
    """Composes nodes within the bounds on their number and depth."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._nodes += 1
        self._depth += 1
        check_size(self._nodes, self._depth)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def check_size(nodes: int, depth: int) -> None:
    """Refuse a tree of so many values, or so deep a path.

    :raises TooMuchError: it is beyond the bounds.
    """
    if nodes > MAX_NODES:
        raise TooMuchError(f"the configuration has more than {MAX_NODES:,} values, aliases counted each time")
    if depth > MAX_DEPTH:
        raise TooMuchError(f"the configuration is nested deeper than {MAX_DEPTH} levels")


class TreeBuilder:
    """Turns composed nodes into plain values; an alias counts each time it is used.

    ``problems`` has what is wrong with the writing although it can be read, ``failed`` the keys whose value is missing
    for it.

    :param label: how problems call the file.
    """

    def __init__(self, label: str) -> None:
        self.lines: dict[KeyPath, int | None] = {}
        self.problems: list[Problem] = []
        self.failed: set[KeyPath] = set()
        self._label = label
        self._nodes = 0

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        """The plain value of a node, which is found at ``path``.

        :raises TooMuchError: beyond the bounds, aliases expanded.
        """
        self._nodes += 1
        check_size(self._nodes, len(path))
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if isinstance(node, yaml.MappingNode) and node.tag == _YAML + "map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _YAML + "seq":
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        return self._no_value(path, line, "tags are not supported; quote text that begins with '!'")

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for key, value in self._pairs(node, path, 0):
            line = key.start_mark.line + 1
            name = key.value
            if name in built:
                first = self.lines[*path, name]
                self._refuse((*path, name), line, f"this key was already given on line {first}")
                continue
            self.lines[*path, name] = line
            built[name] = self.build(value, (*path, name))
        return built

    def _pairs(self, node: yaml.MappingNode, path: KeyPath, depth: int) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """The pairs of a mapping, then those that ``<<`` merges into it and that it does not give itself."""
        own: set[str] = set()
        merged: list[yaml.Node] = []
        for key, value in node.value:
            self._nodes += 1
            check_size(self._nodes, len(path) + depth)
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(path, key.start_mark.line + 1, "a key must be plain text")
            elif key.tag == _YAML + "merge":
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            else:
                own.add(key.value)
                yield key, value
        for source in merged:
            if not isinstance(source, yaml.MappingNode):
                self._refuse(path, source.start_mark.line + 1, "'<<' takes a mapping, or a list of mappings")
                continue
            for key, value in self._pairs(source, path, depth + 1):
                if key.value not in own:
                    own.add(key.value)
                    yield key, value

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        """A scalar, with the words of YAML 1.2: ``no`` is text, and so are dates and ``12:30``."""
        kind, text = node.tag.removeprefix(_YAML), str(node.value)
        if node.tag in _TEXT_TAGS:
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true" if text.lower() in ("true", "false") else text
        if kind in ("int", "float"):
            return text if ":" in text else self._number(node, path)
        return self._no_value(path, node.start_mark.line + 1, "tags are not supported; quote text that begins with '!'")

    def _number(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        try:
            return yaml.constructor.SafeConstructor().construct_object(node)
        except (ValueError, IndexError):
            return self._no_value(path, node.start_mark.line + 1, "this is no number that can be read")

    def _refuse(self, path: KeyPath, line: int, message: str) -> None:
        origin = Origin(label=self._label, lines={path[:end]: line for end in range(len(path) + 1)})
        self.problems.append(origin.problem(path, message, code="syntax"))

    def _no_value(self, path: KeyPath, line: int, message: str) -> None:
        self._refuse(path, line, message)
        self.failed.add(path)


def compose(text: str) -> yaml.Node | None:
    """The one document of a text, as nodes with positions; None for an empty text.

    :raises yaml.YAMLError: not YAML, or beyond the bounds.
    """
    loader = _Composer(text)
    try:
        node: yaml.Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


def yaml_reason(error: yaml.YAMLError) -> tuple[int | None, str]:
    """The line and the reason of a syntax error, without the text around it, which may hold a secret."""
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "this cannot be read"
    if "undefined alias" in reason:
        reason = "an alias that nothing defines; quote text that begins with '*'"
    elif "tag handle" in reason:
        reason = "tags are not supported; quote text that begins with '!'"
    elif "another document" in reason:
        reason = "a second document begins here, and a configuration is one document"
    return (None if mark is None else mark.line + 1), f"not valid YAML: {reason}"
