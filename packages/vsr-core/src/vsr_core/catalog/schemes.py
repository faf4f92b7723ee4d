"""How the labels of a token head make spans: BIO, BIOES and flat labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import CheckpointError

__all__ = ["OUTSIDE", "LabelRole", "LabelScheme", "TokenLabel", "read_scheme"]

OUTSIDE = "O"
"""The label of a token in no span, in either case. Other words for it (``NONE``, ``OUTSIDE``, ``OTHER``) are labels of
their own: data sets do mark things as other, and transformers leaves out ``O`` alone."""

LabelRole = Literal["outside", "begin", "inside", "end", "single"]

_ROLES: dict[str, LabelRole] = {"B": "begin", "I": "inside", "E": "end", "L": "end", "S": "single", "U": "single"}


@dataclass(frozen=True, slots=True)
class TokenLabel:
    """A label of a token head.

    :param name: the label as the model has it.
    :param entity: what a span is labelled with: the name less its prefix, where it has one.
    :param role: where in a span a token with this label stands.
    """

    name: str
    entity: str
    role: LabelRole


@dataclass(frozen=True, slots=True)
class LabelScheme:
    """The labels of a token head in index order, and how they join tokens."""

    kind: Literal["BIO", "BIOES", "flat"]
    labels: tuple[TokenLabel, ...]

    def continues(self, before: int, index: int) -> bool:
        """Whether a token with label ``index`` belongs to the span of the token before it, which has ``before``."""
        last, label = self.labels[before], self.labels[index]
        return last.role in ("begin", "inside") and label.role in ("inside", "end") and last.entity == label.entity


def read_scheme(labels: Sequence[str]) -> LabelScheme:
    """Read the scheme off the labels of a head.

    Labels beside ``O`` are prefixed if more than half of them begin with one of ``B- I- E- L- S- U-`` and one of those
    with ``B-`` or ``I-``; else they are flat, and a label such as ``E-MAIL`` is a whole name. Prefixed labels are
    BIOES (BILOU by other letters) where an entity with ``B-`` or ``I-`` also has one of ``E- L- S- U-``, else BIO. In
    BIO only ``B-`` and ``I-`` are prefixes.

    ``B-`` and ``S-`` open a span, ``E-`` and ``S-`` close it. ``I-X`` continues an open span of X and opens one
    otherwise, so IOB1 is read as well; so do ``E-X``, and a label without a prefix among prefixed ones, as in
    transformers. Of flat labels, neighbours with the same one make a span.

    :raises CheckpointError: no label beside ``O``, or prefixed labels without ``O``.
    """
    marked = [label for label in labels if label.upper() != OUTSIDE]
    if not marked:
        raise CheckpointError(f"the labels of a token head must name something beside {OUTSIDE!r}: set 'labels'")
    prefixes = _prefixes(marked)
    if not prefixes:
        return LabelScheme("flat", tuple(_read(label, prefixes) for label in labels))
    if len(marked) == len(labels):
        raise CheckpointError(
            f"the labels {marked[0]!r} and so on have prefixes, and none is {OUTSIDE!r}, so that every token would be in"
            " a span: correct 'labels'"
        )
    return LabelScheme("BIO" if prefixes == "BI" else "BIOES", tuple(_read(label, prefixes) for label in labels))


def _prefixes(marked: Sequence[str]) -> str:
    """The letters that count as prefixes among these labels; none where they are flat."""
    prefixed = [label for label in marked if _has_prefix(label, "BIELSU")]
    opened = {label[2:] for label in prefixed if _has_prefix(label, "BI")}
    if not opened or 2 * len(prefixed) <= len(marked):
        return ""
    return "BIELSU" if any(_has_prefix(label, "ELSU") and label[2:] in opened for label in prefixed) else "BI"


def _has_prefix(label: str, letters: str) -> bool:
    return len(label) > 2 and label[0] in letters and label[1] == "-"


def _read(label: str, prefixes: str) -> TokenLabel:
    if label.upper() == OUTSIDE:
        return TokenLabel(label, label, "outside")
    if _has_prefix(label, prefixes):
        return TokenLabel(label, label[2:], _ROLES[label[0]])
    return TokenLabel(label, label, "inside")
