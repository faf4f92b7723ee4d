"""What a request needs of a candidate beyond its capability."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import InvalidInputError
from ..taxonomy import Capability, Feature, Kind

__all__ = ["Requirements"]


@dataclass(frozen=True, slots=True)
class Requirements:
    """A capability of a kind, and features; derived from the request, tightened by the caller's ``requires``."""

    kind: Kind
    capability: Capability
    features: frozenset[Feature] = frozenset()

    @classmethod
    def of(
        cls, kind: Kind, capability: Capability, *, derived: Iterable[Feature] = (), requires: Iterable[str] = ()
    ) -> Requirements:
        """Join what the request itself implies with what the caller asks for.

        :raises InvalidInputError: ``requires`` holds something that is no feature.
        """
        if not requires:
            return cls(kind, capability, frozenset(derived))
        if isinstance(requires, str) or not isinstance(requires, Iterable):
            raise InvalidInputError(f"requires must be a list of feature names, not {requires!r}", param="requires")
        return cls(kind, capability, frozenset(derived) | {_feature(name) for name in requires})

    def __str__(self) -> str:
        return ", ".join([self.capability.value, *sorted(feature.value for feature in self.features)])


def _feature(name: object) -> Feature:
    for feature in Feature:
        if feature.value == name:
            return feature
    near = difflib.get_close_matches(str(name), Feature.values(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(Feature.values())}"
    raise InvalidInputError(f"requires: {name!r} is no feature; {hint}", param="requires")
