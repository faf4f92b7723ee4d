"""What a check has to say."""

from __future__ import annotations

from dataclasses import dataclass

from .origin import KeyPath, Origin, Problem

__all__ = ["CheckReport", "Findings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Everything found, in the order of the file.

    :param problems: what makes the configuration impossible here.
    :param notes: what was not looked at, or is taken on trust; one line each.
    """

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is impossible."""
        return not self.problems


class Findings:
    """Collects what a check finds; repetitions count once."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._problems: dict[Problem, None] = {}
        self._notes: dict[str, None] = {}

    def problem(self, path: KeyPath, message: str, *, code: str, hint: str = "") -> None:
        """Something impossible at a key; ``hint`` is appended to the message as it is."""
        self._problems[self._origin.problem(path, message, code=code, hint=hint)] = None

    def note(self, path: KeyPath, message: str) -> None:
        """Something worth knowing at a key."""
        self._notes[str(self._origin.problem(path, message, code="note"))] = None

    def report(self) -> CheckReport:
        """What was found so far."""
        problems = sorted(self._problems, key=lambda one: (one.line or 0, one.where, one.message))
        return CheckReport(problems=tuple(problems), notes=tuple(self._notes))
