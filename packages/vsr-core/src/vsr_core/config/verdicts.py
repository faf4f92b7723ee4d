"""What the capability rules of a backend say about one model of the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from ..contract import CapabilityQuery, CapabilitySet, CatalogEntry, Limits, ModelSpec, Refused
from ..plugins import verdict_on
from ..taxonomy import Artifact, Capability, Feature, Kind, Modality

__all__ = ["Subject", "refusal_of", "serving_capabilities"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model as far as it is known without loading it.

    :param spec: what its files say; None where they were not looked at.
    :param base: for an adapter whose own files do not tell its family, what it sits on.
    """

    entry: CatalogEntry
    spec: ModelSpec | None = None
    base: Subject | None = None

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """What it is for; empty where nobody says."""
        return self.entry.capabilities or (self.spec.capabilities if self.spec is not None else ())

    @property
    def family(self) -> str | None:
        """Its family, where known."""
        if self.spec is not None:
            return self.spec.family
        return self.entry.family or (self.base.family if self.base is not None else None)

    @property
    def artifact(self) -> Artifact | None:
        """The form of its weights, where known."""
        if self.spec is not None:
            return self.spec.artifact
        return self.entry.artifact or (Artifact.LORA_ADAPTER if self.entry.adapter is not None else None)

    @property
    def modality(self) -> Modality | None:
        """What goes in, where known."""
        return self.spec.modality if self.spec is not None else self.entry.modality

    @property
    def features(self) -> tuple[Feature, ...]:
        """The runtime features that the entry's own statements ask for."""
        native, depth = (self.spec.native_dimensions, self.spec.layers) if self.spec is not None else (None, None)
        asked = []
        if any(width != native for width in self.entry.dimensions):
            asked.append(Feature.DIMENSIONS)
        if any(layer != depth for layer in self.entry.layers):
            asked.append(Feature.LAYER_EXIT)
        return tuple(asked)

    def __str__(self) -> str:
        known = [str(one) for one in (self.family, self.artifact) if one is not None]
        return f"{self.entry.name!r}" + (f" ({', '.join(known)})" if known else "")


def serving_capabilities(subject: Subject, kind: Kind) -> tuple[Capability, ...]:
    """The capabilities of a model that serve requests of a kind, directly or as what core derives them from."""
    return tuple(
        capability
        for capability in subject.capabilities
        if capability.kind is kind
        or any(derived.kind is kind and derived.derived_from is capability for derived in Capability)
    )


def refusal_of(declared: CapabilitySet, subject: Subject, capability: Capability) -> Refused | None:
    """Why a backend does not serve a model for a capability, in the words of its rules; None where it does."""
    if subject.family is None or subject.artifact is None:
        verdict = declared.overview(capability.derived_from or capability)  # too little is known to ask for one cell
        return verdict if isinstance(verdict, Refused) else None
    cell = CapabilityQuery(
        capability=capability, family=subject.family, artifact=subject.artifact, modality=subject.modality
    )
    verdict = verdict_on(declared, cell)
    if isinstance(verdict, Refused):
        return verdict
    return _beyond(verdict.limits, subject.entry) or _missing_feature(declared, subject, capability)


def _missing_feature(declared: CapabilitySet, subject: Subject, capability: Capability) -> Refused | None:
    for feature in subject.features:
        verdict = verdict_on(
            declared,
            CapabilityQuery(
                capability=capability,
                family=subject.family,
                artifact=subject.artifact,
                modality=subject.modality,
                feature=feature,
            ),
        )
        if isinstance(verdict, Refused):
            return Refused(verdict.code, f"{feature}: {verdict.reason}")
        beyond = _beyond(verdict.limits, subject.entry)
        if beyond is not None:
            return beyond
    return None


def _beyond(limits: Limits, entry: CatalogEntry) -> Refused | None:
    """The first statement of an entry that is beyond what a backend can do."""
    if limits.max_tokens is not None and entry.max_tokens is not None and entry.max_tokens > limits.max_tokens:
        return Refused("limit", f"max_tokens is {entry.max_tokens}, and the backend's limit is {limits.max_tokens}")
    for what, stated, allowed in (
        ("dimensions", entry.dimensions, limits.dimensions),
        ("layers", entry.layers, limits.layers),
    ):
        outside = [one for one in stated if allowed is not None and one not in allowed]
        if outside:
            listed = ", ".join(map(str, allowed or ()))
            return Refused("limit", f"{what} has {outside[0]}, and the backend allows {listed or 'none'}")
    return None
