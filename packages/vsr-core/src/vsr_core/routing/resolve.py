"""From the name in a call to the ids it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..contract import BackendId, CatalogEntry, RoleTable
from ..errors import InvalidInputError, ModelNotFoundError
from ..taxonomy import Kind

__all__ = ["Resolver"]

_BORROWS: Mapping[Kind, Kind] = {Kind.RERANKING: Kind.EMBEDDING}
"""A kind without a role of its own uses the roles of the kind its derived capability is computed from."""


class Resolver:
    """Reads a name in this order: a backend id, a role of the kind, the name of a catalog entry.

    :param backends_for: the backends that may serve an entry which names none, in order.
    """

    def __init__(
        self,
        roles: RoleTable,
        catalog: Mapping[str, CatalogEntry],
        *,
        backends_for: Callable[[CatalogEntry], tuple[str, ...]],
    ) -> None:
        self._roles = roles
        self._catalog = catalog
        self._backends_for = backends_for
        self._kinds_with_roles = frozenset(kind for kind, _, _ in roles.items())

    def group(self, kind: Kind, name: str) -> tuple[BackendId, ...] | None:
        """The ids a name stands for, in order; None for the name ``default`` where nobody defined it.

        :raises InvalidInputError: the name is no text, or a malformed backend id.
        :raises ModelNotFoundError: it is neither an id, nor a role of the kind, nor a catalog entry.
        """
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f"model must be a name or '<backend>:<model>', not {name!r}", param="model")
        if ":" in name:
            return (BackendId.parse(name),)
        for namespace in self._namespaces(kind):
            if self._roles.has(namespace, name):
                return self._roles.group(namespace, name)
        if name in self._catalog:
            return self.expand(self._catalog[name])
        if name == "default":
            return None
        raise ModelNotFoundError(f"no {kind} role and no model is called {name!r}; `vsr models` lists them", name=name)

    def kinds_of(self, name: str) -> frozenset[Kind]:
        """The kinds in which a name is a role."""
        return frozenset(kind for kind in Kind if self._roles.has(kind, name))

    def expand(self, entry: CatalogEntry) -> tuple[BackendId, ...]:
        """The ids of one catalog entry: one per backend that may serve it."""
        return tuple(BackendId(backend, entry.name) for backend in entry.backends or self._backends_for(entry))

    def _namespaces(self, kind: Kind) -> tuple[Kind, ...]:
        borrowed = _BORROWS.get(kind)
        if borrowed is None or kind in self._kinds_with_roles:
            return (kind,)
        return (kind, borrowed)
