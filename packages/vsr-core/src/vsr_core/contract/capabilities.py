"""What a backend can do, as data: the same rules answer the config check, the matrix, the server and a request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import ClassVar

from ..taxonomy import Artifact, Capability, Feature, Modality

__all__ = ["CapabilityQuery", "CapabilitySet", "Limits", "Refused", "Rule", "Selector", "Supported", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityQuery:
    """One cell of the matrix: may this be done? A family is a name; None where it is not known."""

    capability: Capability
    family: str | None = None
    artifact: Artifact | None = None
    modality: Modality | None = None
    feature: Feature | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which cells a rule speaks of; what is None matches everything, but see ``feature``.

    A query that asks for a feature is answered by rules that name that feature alone: supporting a capability says
    nothing about the features around it.
    """

    capability: Capability | None = None
    family: str | None = None
    artifact: Artifact | None = None
    modality: Modality | None = None
    feature: Feature | None = None

    @property
    def specificity(self) -> int:
        """How many axes are pinned."""
        return sum(getattr(self, field.name) is not None for field in fields(self))

    def matches(self, query: CapabilityQuery) -> bool:
        """Whether the rule of this selector speaks of the queried cell."""
        return (
            self.feature is query.feature
            and self.capability in (None, query.capability)
            and self.family in (None, query.family)
            and self.artifact in (None, query.artifact)
            and self.modality in (None, query.modality)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds within which something is supported; None is no bound of the backend's own."""

    max_tokens: int | None = None
    max_items: int | None = None
    dimensions: tuple[int, ...] | None = None
    layers: tuple[int, ...] | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Supported:
    """Yes, within limits."""

    tag: ClassVar[str] = "supported"
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Refused:
    """No: a stable code for machines and a reason for people."""

    tag: ClassVar[str] = "refused"
    code: str
    reason: str


Verdict = Supported | Refused

_UNDECLARED = Refused("undeclared", "the backend does not declare it")


@dataclass(frozen=True, slots=True)
class Rule:
    """A selector and what holds for the cells it selects."""

    selector: Selector
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CapabilitySet:
    """Ordered rules. The most specific that matches decides; among equals the later one; the default is refused."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, rules: Iterable[tuple[Selector, Verdict]]) -> CapabilitySet:
        """Build a set from (selector, verdict) pairs."""
        return cls(tuple(Rule(selector, verdict) for selector, verdict in rules))

    def decide(self, query: CapabilityQuery) -> Verdict:
        """The verdict on one cell."""
        best: Rule | None = None
        for rule in self.rules:
            if rule.selector.matches(query) and (
                best is None or rule.selector.specificity >= best.selector.specificity
            ):
                best = rule
        return best.verdict if best is not None else _UNDECLARED

    def supports(self, query: CapabilityQuery) -> bool:
        """Whether the verdict is ``Supported``."""
        return isinstance(self.decide(query), Supported)

    def overview(self, capability: Capability) -> Verdict:
        """The verdict on a capability for whatever family and artifact suits it best.

        Supported where some cell of it is; otherwise the refusal a caller who named the capability alone would get.
        """
        for rule in self.rules:
            if self._supports(rule, capability):
                return self.decide(_cell(rule.selector, capability))
        return self.decide(CapabilityQuery(capability=capability))

    def families(self, capability: Capability) -> tuple[str, ...]:
        """The families for which the capability is supported by name, for some artifact and modality, sorted."""
        named = {rule.selector.family for rule in self.rules if self._supports(rule, capability)}
        return tuple(sorted(family for family in named if family is not None))

    def _supports(self, rule: Rule, capability: Capability) -> bool:
        """Whether the very cell a rule speaks of is supported for a capability, with no feature asked for."""
        selector = rule.selector
        if selector.feature is not None or selector.capability not in (None, capability):
            return False
        return self.supports(_cell(selector, capability))


def _cell(selector: Selector, capability: Capability) -> CapabilityQuery:
    return CapabilityQuery(
        capability=capability, family=selector.family, artifact=selector.artifact, modality=selector.modality
    )
