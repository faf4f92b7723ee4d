"""What a backend claims, cell by cell, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...contract import CapabilityQuery, CapabilitySet, Refused, Supported, Verdict
from ...taxonomy import Artifact, Capability, Feature, Modality
from .folders import HEADS

__all__ = ["Cell", "claims", "feature_claims", "feature_refusals", "first_claims", "refusals", "told_apart"]

FAKED = (Artifact.FULL, Artifact.ONNX)
"""Forms of weights of which a folder can be made that is good enough to be refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the matrix, with one family and one form of weights."""

    capability: Capability
    family: str
    artifact: Artifact
    feature: Feature | None = None

    def __str__(self) -> str:
        parts = (self.capability, self.family, self.artifact, self.feature)
        return "-".join(str(part) for part in parts if part is not None)

    def verdict(self, rules: CapabilitySet) -> Verdict:
        """What a backend says of it."""
        return rules.decide(
            CapabilityQuery(
                capability=self.capability,
                family=self.family,
                artifact=self.artifact,
                modality=Modality.TEXT,
                feature=self.feature,
            )
        )


def claims(rules: CapabilitySet, *, families: Sequence[str], artifacts: Sequence[Artifact]) -> list[Cell]:
    """Every capability with every family and form of weights it is supported for.

    :param families: the families of a backend whose rules name none, and those that come first where they do;
        ``artifacts`` are the forms of weights of a backend whose rules name none.
    """
    found = []
    for capability in Capability:
        named = sorted(rules.families(capability) or families, key=lambda family: family not in families)
        for family in named:
            for artifact in _artifacts(rules) or tuple(artifacts):
                if artifact is Artifact.LORA_ADAPTER:
                    continue  # it is loaded on a base, which the kit does not do
                cell = Cell(capability=capability, family=family, artifact=artifact)
                if isinstance(cell.verdict(rules), Supported):
                    found.append(cell)
    merged = [cell for cell in found if cell.artifact is Artifact.MERGED_LORA]
    once = first_claims(merged)  # a merged adapter is stored as the whole model is, so that once will do
    return [cell for cell in found if cell not in merged or cell in once]


def first_claims(cells: Sequence[Cell]) -> list[Cell]:
    """One cell of each capability."""
    return list({cell.capability: cell for cell in reversed(cells)}.values())[::-1]


def feature_claims(rules: CapabilitySet, cells: Sequence[Cell]) -> list[Cell]:
    """Every supported feature of a capability: with every family where the rules tell families apart, else with one."""
    apart = {rule.selector.feature for rule in rules.rules if rule.selector.family is not None}
    wide = [replace(cell, feature=feature) for feature in apart if feature is not None for cell in cells]
    narrow = [replace(cell, feature=feature) for feature in Feature for cell in first_claims(cells)]
    supported = [cell for cell in (*wide, *narrow) if isinstance(cell.verdict(rules), Supported)]
    return sorted(dict.fromkeys(supported), key=str)


def told_apart(rules: CapabilitySet, cells: Sequence[Cell]) -> list[Cell]:
    """One cell of each capability, and one of each family that a feature is refused for by name."""
    named = {
        rule.selector.family for rule in rules.rules if rule.selector.feature and isinstance(rule.verdict, Refused)
    }
    families = {cell.family: cell for cell in reversed(cells) if cell.family in named}
    return list(dict.fromkeys((*first_claims(cells), *families.values())))


def refusals(rules: CapabilitySet, *, families: Sequence[str]) -> list[Cell]:
    """Cells of the encoder capabilities that are refused, and of which a folder can be made."""
    cells = (
        Cell(capability=capability, family=family, artifact=artifact)
        for capability in HEADS
        for family in families
        for artifact in FAKED
    )
    return [cell for cell in cells if isinstance(cell.verdict(rules), Refused)]


def feature_refusals(rules: CapabilitySet, cells: Sequence[Cell]) -> list[Cell]:
    """The features that are refused for the first claim of each capability."""
    asked = (replace(cell, feature=feature) for cell in first_claims(cells) for feature in Feature)
    return [cell for cell in asked if cell.capability in HEADS and isinstance(cell.verdict(rules), Refused)]


def _artifacts(rules: CapabilitySet) -> tuple[Artifact, ...]:
    """The forms of weights that rules name."""
    return tuple(dict.fromkeys(_named(rules)))


def _named(rules: CapabilitySet) -> Iterator[Artifact]:
    for rule in rules.rules:
        if rule.selector.artifact is not None and isinstance(rule.verdict, Supported):
            yield rule.selector.artifact
