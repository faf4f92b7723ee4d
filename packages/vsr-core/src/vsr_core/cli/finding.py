"""What ``vsr doctor`` finds, one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Mark"]

Mark = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding.

    :param area: what was looked at, such as ``backends``.
    :param details: more of it, one line each.
    :param way_out: what to do about it, for what is not ok.
    """

    area: str
    mark: Mark
    title: str
    details: tuple[str, ...] = ()
    way_out: str | None = None
