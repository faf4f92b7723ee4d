"""From the roles as written to the groups they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..contract import BackendId, CatalogEntry, RoleTable
from ..errors import ConfigError, InvalidInputError
from ..taxonomy import Kind
from .explain import closest
from .origin import KeyPath, Origin, Problem
from .schema import RoleSettings

__all__ = ["ResolvedRoles", "RoleTarget", "resolve_roles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTarget:
    """One thing a role names: a backend id, or another role of its kind.

    :param path: where it is written.
    """

    kind: Kind
    role: str
    target: BackendId | str
    path: KeyPath = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRoles:
    """The roles of a configuration, and what is wrong with them."""

    table: RoleTable
    targets: tuple[RoleTarget, ...]
    problems: tuple[Problem, ...]


def resolve_roles(
    roles: Mapping[Kind, Mapping[str, RoleSettings]],
    catalog: Mapping[str, CatalogEntry],
    origin: Origin,
    *,
    damaged: frozenset[KeyPath],
) -> ResolvedRoles:
    """Expand catalog names and resolve every group.

    :param damaged: entries and roles that are there but cannot be used; who names them has done nothing wrong.
    """
    reader = _Reader(roles, catalog, origin, damaged)
    named = sorted((kind, role) for kind, table in roles.items() for role in table)
    targets = tuple(target for kind, role in named for target in reader.role(kind, role))
    table, problems = _table(roles, targets, origin, incomplete=bool(reader.problems or damaged))
    return ResolvedRoles(table=table, targets=targets, problems=(*reader.problems, *problems))


class _Reader:
    """Reads one role after the other, and remembers what is wrong."""

    def __init__(
        self,
        roles: Mapping[Kind, Mapping[str, RoleSettings]],
        catalog: Mapping[str, CatalogEntry],
        origin: Origin,
        damaged: frozenset[KeyPath],
    ) -> None:
        self.problems: list[Problem] = []
        self._roles = roles
        self._catalog = catalog
        self._origin = origin
        self._damaged = damaged

    def role(self, kind: Kind, role: str) -> Iterator[RoleTarget]:
        """The targets of a role in order, each once."""
        settings = self._roles[kind][role]
        if not settings.model and not settings.fallback:
            self._refuse(("roles", kind.value, role), "the group is empty")
        seen: set[BackendId | str] = set()
        for key, names in (("model", settings.model), ("fallback", settings.fallback)):
            for index, name in enumerate(names):
                path = self._origin.written(("roles", kind.value, role, key, index))
                for target in self._targets(kind, name, path):
                    if target not in seen:
                        seen.add(target)
                        yield RoleTarget(kind=kind, role=role, target=target, path=path)

    def _targets(self, kind: Kind, name: str, path: KeyPath) -> tuple[BackendId | str, ...]:
        if ":" in name:
            try:
                return (BackendId.parse(name),)
            except InvalidInputError as error:
                return self._refuse(path, error.message)
        if name in self._roles[kind]:
            return (name,)
        if name in self._catalog:
            return self._flat(name, path)
        if {("roles", kind.value, name), ("catalog", name)} & self._damaged:
            return ()
        known = (*self._roles[kind], *self._catalog)
        return self._refuse(
            path,
            f"{name!r} is neither a backend id, nor a role of kind {kind}, nor in the catalog{closest(name, known)}",
        )

    def _flat(self, name: str, path: KeyPath) -> tuple[BackendId | str, ...]:
        backends = self._catalog[name].backends
        if backends:
            return tuple(BackendId(backend, name) for backend in backends)
        return self._refuse(
            path,
            f"the catalog entry {name!r} does not say which backend serves it; "
            f"write '<backend>:{name}' here, or list 'backends' in the entry",
        )

    def _refuse(self, path: KeyPath, message: str) -> tuple[BackendId | str, ...]:
        self.problems.append(self._origin.problem(path, message, code="role_target"))
        return ()


def _table(
    roles: Mapping[Kind, Mapping[str, RoleSettings]],
    targets: tuple[RoleTarget, ...],
    origin: Origin,
    *,
    incomplete: bool,
) -> tuple[RoleTable, list[Problem]]:
    """The table, and what it refuses.

    :param incomplete: whether targets are missing, so that a group may be empty for no fault of its own.
    """
    written: dict[Kind, dict[str, list[str]]] = {kind: {role: [] for role in table} for kind, table in roles.items()}
    for target in targets:
        written[target.kind][target.role].append(str(target.target))
    try:
        return RoleTable(written), []
    except ConfigError as error:
        messages = [text for text in error.problems if not (incomplete and text.endswith("the group is empty"))]
        return RoleTable({}), [_refusal(text, roles, origin) for text in messages]


def _refusal(text: str, roles: Mapping[Kind, Mapping[str, RoleSettings]], origin: Origin) -> Problem:
    """A refusal of the table, at the key its text begins with."""
    where, _, message = text.partition(": ")
    paths: dict[str, KeyPath] = {
        f"roles.{kind}.{role}": ("roles", kind.value, role) for kind, table in roles.items() for role in table
    }
    paths |= {f"roles.{kind}": ("roles", kind.value) for kind in roles}
    path = paths.get(where, ())
    return origin.problem(path, message if path else text, code="role_group")
