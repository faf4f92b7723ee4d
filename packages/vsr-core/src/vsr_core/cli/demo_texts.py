"""What ``vsr demo`` is about: sentences whose order any model of English must get right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DOCUMENTS", "QUERY", "TRIALS", "Trial"]

QUERY: Final = "How do I keep my houseplants alive while I am on holiday?"

DOCUMENTS: Final = (
    "A wick from a jar of water into the soil waters a pot for about two weeks.",
    "The night train to Lisbon leaves from platform four at nine.",
    "Move plants out of direct sun before you travel, so that the soil dries more slowly.",
    "Interest rates rose again this quarter, and mortgages with them.",
    "Ask a neighbour to water the ferns every third day.",
    "The goalkeeper saved two penalties in the last minutes of the match.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A text with one that means nearly the same, and one about something else."""

    text: str
    near: str
    far: str


TRIALS: Final = (
    Trial(
        text="The cat is sleeping on the sofa.",
        near="A kitten naps on the couch.",
        far="The parliament passed the new budget.",
    ),
    Trial(
        text="How can I get my money back?",
        near="I would like to request a refund.",
        far="The mountain is covered in snow all year.",
    ),
    Trial(
        text="My computer does not turn on any more.",
        near="The laptop will not boot.",
        far="She baked a cake with fresh strawberries.",
    ),
)
