"""A call that has been planned and not been made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from ..contract import CallContext, Response
from ..routing import Plan
from .operations import Operation

__all__ = ["Ask"]

R_co = TypeVar("R_co", bound=Response, covariant=True)


@dataclass(frozen=True, slots=True)
class Ask(Generic[R_co]):
    """A planned call that has not been made yet."""

    plan: Plan
    operation: Operation[R_co]
    call: CallContext
