"""References to environment variables inside the strings of a configuration.

``${NAME}`` is the variable's value, ``${NAME:-default}`` the default where it is unset or empty, ``$${`` a literal
``${``. A reference may be part of a string; keys are taken as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .origin import Hidden, KeyPath, Origin, Problem

__all__ = ["Expansion", "expand_references", "is_secret_key"]

_TOKEN: Final = re.compile(r"\$\$\{|\$\{(?P<body>[^{}]*)\}|\$\{")
_BODY: Final = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_SECRET: Final = re.compile(r"(?i)(?:key|token|secret|password|passwd|pwd|credential|authorization|dsn)s?$|^url$")
_PUBLIC: Final = frozenset({"max_tokens", "max_batch_tokens", "max_queue_tokens"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A tree with its references replaced.

    :param failed: where a reference could not be replaced; the values there are still the references.
    :param hidden: every text no message may show.
    """

    data: dict[str, Any] = field(repr=False)
    problems: tuple[Problem, ...]
    failed: frozenset[KeyPath]
    hidden: tuple[Hidden, ...] = field(repr=False)


def expand_references(data: Mapping[str, Any], origin: Origin, *, environ: Mapping[str, str]) -> Expansion:
    """Replace every reference in the strings of a tree; what cannot be replaced is a problem each."""
    expander = _Expander(origin, environ)
    expanded = {key: expander.walk(value, (key,)) for key, value in data.items()}
    return Expansion(
        data=expanded,
        problems=tuple(expander.problems),
        failed=frozenset(expander.failed),
        hidden=tuple(expander.hidden),
    )


def is_secret_key(name: str) -> bool:
    """Whether the value of a key of this name is to be kept out of every message."""
    return name not in _PUBLIC and _SECRET.search(name) is not None


class _Expander:
    def __init__(self, origin: Origin, environ: Mapping[str, str]) -> None:
        self.problems: list[Problem] = []
        self.failed: list[KeyPath] = []
        self.hidden: list[Hidden] = []
        self._origin = origin
        self._environ = environ

    def walk(self, value: Any, path: KeyPath) -> Any:
        if isinstance(value, Mapping):
            return {key: self.walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.walk(item, (*path, index)) for index, item in enumerate(value)]
        return self._text(value, path) if isinstance(value, str) else value

    def _text(self, raw: str, path: KeyPath) -> str:
        found: dict[str, str] = {}
        text = _TOKEN.sub(lambda match: self._replace(match, path, found), raw) if "${" in raw else raw
        secret = any(isinstance(step, str) and is_secret_key(step) for step in path)
        if text and (secret or found):
            self.hidden.append(Hidden(text=text, shown="***" if secret else raw, path=path))
        self.hidden += [Hidden(text=value, shown=f"${{{name}}}", path=path) for name, value in found.items()]
        return text

    def _replace(self, match: re.Match[str], path: KeyPath, found: dict[str, str]) -> str:
        if match[0] == "$${":
            return "${"
        body = _BODY.fullmatch(match["body"] or "")
        if body is None:
            self._fail(path, "a malformed reference: write ${NAME} or ${NAME:-default}, or $${ for the text '${'")
            return match[0]
        value = self._environ.get(body["name"])
        if body["default"] is not None and not value:
            return body["default"]
        if value is None:
            self._fail(path, f"the environment variable {body['name']!r} is not set and has no default here")
            return match[0]
        if value:
            found[body["name"]] = value
        return value

    def _fail(self, path: KeyPath, message: str) -> None:
        self.failed.append(path)
        self.problems.append(self._origin.problem(path, message, code="environment"))
