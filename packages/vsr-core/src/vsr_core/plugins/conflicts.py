"""Who is used where two plugins claim one name: neither, unless ``plugins.precedence`` names the winner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, Literal, TypeVar

from ..contract import BackendDescriptor, CatalogEntry, FamilyDescriptor, PolicyDescriptor, RouterDescriptor
from .intake import Plugin
from .records import Contribution, PluginSource
from .settings import same_name

__all__ = ["Dispute", "Registry", "What", "names_distribution", "names_party", "resolve"]

What = Literal["backend", "policy", "router", "family", "catalog entry"]
"""The name spaces of contributions."""

D = TypeVar("D", BackendDescriptor, PolicyDescriptor, RouterDescriptor, FamilyDescriptor, CatalogEntry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispute:
    """A name that several plugins claim.

    :param losers: the parties whose contribution is not used.
    :param settled: whether the precedence named a winner.
    """

    what: What
    name: str
    losers: tuple[PluginSource, ...]
    text: str
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """Every contribution in use, sorted by name, and the disputes that took others out."""

    backends: Mapping[str, Contribution[BackendDescriptor]] = field(default_factory=dict)
    policies: Mapping[str, Contribution[PolicyDescriptor]] = field(default_factory=dict)
    routers: Mapping[str, Contribution[RouterDescriptor]] = field(default_factory=dict)
    families: Mapping[str, FamilyDescriptor] = field(default_factory=dict)
    catalog: tuple[CatalogEntry, ...] = ()
    disputes: tuple[Dispute, ...] = ()


def resolve(
    plugins: Iterable[Plugin], precedence: Mapping[str, str], core_families: Iterable[FamilyDescriptor]
) -> Registry:
    """Put together what active plugins offer.

    A core family stays in use when a plugin claims its name without precedence: other plugins build on it.
    """
    active = [plugin for plugin in plugins if plugin.status == "active"]
    core = {family.name: family for family in sorted(core_families, key=lambda family: family.name)}
    backends = _Claims[BackendDescriptor]("backend", precedence)
    policies = _Claims[PolicyDescriptor]("policy", precedence)
    routers = _Claims[RouterDescriptor]("router", precedence)
    families = _Claims[FamilyDescriptor]("family", precedence, taken=core)
    entries = _Claims[CatalogEntry]("catalog entry", precedence)
    for plugin in active:
        backends.claim(plugin.source, plugin.offer.backends)
        policies.claim(plugin.source, plugin.offer.policies)
        routers.claim(plugin.source, plugin.offer.routers)
        families.claim(plugin.source, plugin.offer.families)
        entries.claim(plugin.source, plugin.offer.catalog)
    added = {name: claim.descriptor for name, claim in families.used().items()}
    catalog = tuple(replace(c.descriptor, contributed_by=c.plugin) for c in entries.used().values())
    return Registry(
        backends=backends.used(),
        policies=policies.used(),
        routers=routers.used(),
        families=MappingProxyType(dict(sorted((core | added).items()))),
        catalog=catalog,
        disputes=tuple(
            dispute for claims in (backends, policies, routers, families, entries) for dispute in claims.disputes()
        ),
    )


def names_distribution(choice: str | None, source: PluginSource) -> bool:
    """Whether a value of ``plugins.precedence`` means this plugin's distribution."""
    return choice is not None and same_name(choice) == same_name(source.distribution)


def names_party(choice: str | None, source: PluginSource) -> bool:
    """Whether a value of ``plugins.precedence`` means this plugin, by its own name or its distribution's."""
    named = choice is not None and same_name(choice) == same_name(source.name)
    return named or names_distribution(choice, source)


class _Claims(Generic[D]):
    """All claims to the names of one name space.

    :param taken: names the core itself has; a claim to one needs precedence.
    """

    def __init__(self, what: What, precedence: Mapping[str, str], *, taken: Iterable[str] = ()) -> None:
        self._what = what
        self._precedence = precedence
        self._taken = frozenset(taken)
        self._claims: dict[str, list[Contribution[D]]] = {}

    def claim(self, source: PluginSource, descriptors: Iterable[D]) -> None:
        for descriptor in descriptors:
            self._claims.setdefault(descriptor.name, []).append(Contribution(descriptor=descriptor, source=source))

    def used(self) -> Mapping[str, Contribution[D]]:
        """The undisputed and the winning contributions, sorted by name."""
        winners = {name: self._winner(name) for name in sorted(self._claims)}
        return MappingProxyType({name: winner for name, winner in winners.items() if winner is not None})

    def disputes(self) -> tuple[Dispute, ...]:
        return tuple(self._dispute(name) for name in sorted(self._claims) if self._contested(name))

    def _contested(self, name: str) -> bool:
        return len(self._claims[name]) > 1 or (name in self._taken and self._winner(name) is None)

    def _winner(self, name: str) -> Contribution[D] | None:
        claims = self._claims[name]
        if len(claims) == 1 and name not in self._taken:
            return claims[0]
        chosen = [claim for claim in claims if names_party(self._precedence.get(name), claim.source)]
        return chosen[0] if len(chosen) == 1 else None

    def _dispute(self, name: str) -> Dispute:
        winner = self._winner(name)
        losers = tuple(claim.source for claim in self._claims[name] if claim is not winner)
        claimants = " and ".join(str(claim.source) for claim in self._claims[name])
        if winner is not None:
            outcome = f"plugins.precedence gives it to {winner.plugin!r}"
        elif name in self._taken:
            claimants = f"the core and {claimants}"
            outcome = "the core's is used; name the plugin in plugins.precedence to use its own instead"
        else:
            outcome = "neither is used; disable one of them or name the one to use in plugins.precedence"
        text = f"{self._what} {name!r} is offered by {claimants}: {outcome}"
        return Dispute(what=self._what, name=name, losers=losers, text=text, settled=winner is not None)
