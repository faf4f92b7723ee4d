"""How models are addressed: backend ids, roles, and the groups that roles resolve to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from ..errors import ConfigError, InvalidInputError, RoleNotFoundError
from ..taxonomy import Kind

__all__ = ["MAX_GROUP", "BackendId", "RoleTable", "check_backend_name", "check_name"]

MAX_GROUP = 5
"""How many candidates a group may have."""

_MAX_NESTING = 20

_BACKEND = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_MODEL = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,254}[^\s\x00-\x1f\x7f])?")


def check_backend_name(name: object) -> str:
    """Return a backend's name (its namespace) if it is well formed.

    :raises ConfigError: unless it is 1 to 63 of ``a-z 0-9 _ -``, starting with a letter.
    """
    if not isinstance(name, str) or not _BACKEND.fullmatch(name):
        raise ConfigError(f"{name!r} is no backend name: use 1 to 63 of a-z, 0-9, '_' and '-', starting with a letter")
    return name


def check_name(name: object, what: str = "name") -> str:
    """Return the name of a role or catalog entry if it is well formed.

    :raises ConfigError: unless it is 1 to 127 of ``A-Z a-z 0-9 . _ -``, starting with a letter or digit. A colon
        is what tells a backend id from a name, so neither kind of name may hold one.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is no {what}: use 1 to 127 of A-Z, a-z, 0-9, '.', '_' and '-', starting with a letter or digit"
        )
    return name


@dataclass(frozen=True, slots=True, order=True)
class BackendId:
    """``<backend>:<model>``, split at the first colon: ``ollama:llama3.2:3b`` is model ``llama3.2:3b``."""

    backend: str
    model: str

    def __str__(self) -> str:
        return f"{self.backend}:{self.model}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a backend id.

        :raises InvalidInputError: where there is no colon, or either side is empty or malformed.
        """
        backend, colon, model = text.partition(":")
        if not colon or not _BACKEND.fullmatch(backend) or not _MODEL.fullmatch(model):
            raise InvalidInputError(f"{text!r} is no backend id: expected '<backend>:<model>'", param="model")
        return cls(backend, model)


class RoleTable:
    """Which group each role stands for, within its kind. Immutable; roles that name roles are resolved at once.

    :param roles: kind -> role name -> ordered targets, each a backend id or the name of a role of that kind.
    :raises ConfigError: a malformed name, an unknown target, a cycle, an empty group, or one over five; every
        problem is reported.
    """

    def __init__(self, roles: Mapping[Kind, Mapping[str, Sequence[str]]]) -> None:
        problems: list[str] = []
        self._groups: dict[tuple[Kind, str], tuple[BackendId, ...]] = {}
        for kind, table in roles.items():
            for name in table:
                try:
                    check_name(name, "role name")
                    self._groups[kind, name] = _resolve(kind, name, table)
                except ConfigError as error:
                    problems.append(error.message)
        if problems:
            raise ConfigError("\n".join(problems), problems=problems)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RoleTable) and self._groups == other._groups

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RoleTable({', '.join(f'{kind}.{name}' for kind, name in sorted(self._groups))})"

    def group(self, kind: Kind, name: str) -> tuple[BackendId, ...]:
        """The ordered, de-duplicated candidates of a role.

        :raises RoleNotFoundError: this kind has no such role.
        """
        try:
            return self._groups[kind, name]
        except KeyError:
            raise RoleNotFoundError(f"no {kind} role is called {name!r}", name=name) from None

    def has(self, kind: Kind, name: str) -> bool:
        """Whether this kind has a role of that name."""
        return (kind, name) in self._groups

    def items(self) -> tuple[tuple[Kind, str, tuple[BackendId, ...]], ...]:
        """Every (kind, role, group), sorted."""
        return tuple((kind, name, group) for (kind, name), group in sorted(self._groups.items()))


def _resolve(kind: Kind, name: str, table: Mapping[str, Sequence[str]]) -> tuple[BackendId, ...]:
    group = _Walk(kind, table).targets(name, ())
    if not group:
        raise ConfigError(f"roles.{kind}.{name}: the group is empty")
    if len(group) > MAX_GROUP:
        raise ConfigError(
            f"roles.{kind}.{name}: the group has {len(group)} candidates, at most {MAX_GROUP} are allowed"
        )
    return group


class _Walk:
    """Follows roles that name roles; what a role stands for is worked out once, however often it is named."""

    def __init__(self, kind: Kind, table: Mapping[str, Sequence[str]]) -> None:
        self._kind = kind
        self._table = table
        self._known: dict[str, tuple[BackendId, ...]] = {}

    def targets(self, name: str, path: tuple[str, ...]) -> tuple[BackendId, ...]:
        if name in path:
            raise ConfigError(f"roles.{self._kind}: roles name each other in a cycle: {' -> '.join((*path, name))}")
        if len(path) >= _MAX_NESTING:
            raise ConfigError(f"roles.{self._kind}.{path[0]}: roles name roles more than {_MAX_NESTING} deep")
        if name not in self._known:
            found: dict[BackendId, None] = {}
            for target in self._table[name]:
                found.update(dict.fromkeys(self._target(name, target, (*path, name))))
            self._known[name] = tuple(found)
        return self._known[name]

    def _target(self, name: str, target: str, path: tuple[str, ...]) -> tuple[BackendId, ...]:
        if ":" in target:
            try:
                return (BackendId.parse(target),)
            except InvalidInputError as error:
                raise ConfigError(f"roles.{self._kind}.{name}: {error.message}") from None
        if target in self._table:
            return self.targets(target, path)
        raise ConfigError(
            f"roles.{self._kind}.{name}: {target!r} is neither a backend id nor a role of kind {self._kind}"
        )
