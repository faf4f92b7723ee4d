"""Where each key of a configuration was written, and how a problem there is reported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import ConfigError

__all__ = ["Hidden", "KeyPath", "Origin", "Problem", "dotted", "raise_problems"]

KeyPath = tuple[str | int, ...]
"""Keys and list positions from the top of the configuration down."""

_LONG_ENOUGH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a configuration.

    :param where: the key, such as ``roles.embedding.default[1]``; empty for the configuration as a whole.
    :param message: one sentence a user can act on; holds no secret.
    :param code: stable, for machines.
    :param source: the file, or ``config`` for a configuration given as a mapping; ``line`` counts from 1.
    """

    where: str
    message: str
    code: str
    source: str
    line: int | None = None

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return ": ".join(part for part in (place, self.where, self.message) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """A text that no message may show, where it is used, and what is shown in its place."""

    text: str = field(repr=False)
    shown: str
    path: KeyPath

    def replaced_in(self, message: str) -> str:
        """The message with this text replaced wherever it stands by itself."""
        whole = rf"(?<![A-Za-z0-9]){re.escape(self.text)}(?![A-Za-z0-9])"
        return re.sub(whole, lambda _: self.shown, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a configuration came from.

    :param label: how messages call it.
    :param lines: every key path there is, with its line where it has one.
    :param hidden: what came from the environment or is a secret.
    """

    label: str
    lines: Mapping[KeyPath, int | None] = field(default_factory=dict, repr=False)
    hidden: tuple[Hidden, ...] = field(default=(), repr=False)

    def written(self, path: KeyPath) -> KeyPath:
        """The part of a path that is really there: steps that validation added, or that are missing, left out.

        Where nothing is known of what is there, all of it.
        """
        if not self.lines:
            return path
        found: KeyPath = ()
        for step in path:
            if (*found, step) in self.lines:
                found = (*found, step)
        return found

    def problem(self, path: KeyPath, message: str, *, code: str, hint: str = "") -> Problem:
        """A problem at a key.

        :param message: what is wrong; hidden texts in it are replaced.
        :param hint: appended as it is.
        """
        found = self.written(path)
        return Problem(
            where=dotted(found),
            message=self.redact(message, found) + hint,
            code=code,
            source=self.label,
            line=self.lines.get(found),
        )

    def redact(self, message: str, path: KeyPath = ()) -> str:
        """The message with every hidden text replaced.

        A short text is an everyday word more often than not, so it is replaced only in messages about the place
        where it is used.
        """
        for hidden in sorted(self.hidden, key=lambda one: -len(one.text)):
            near = path[: len(hidden.path)] == hidden.path[: len(path)]
            if hidden.text in message and (near or len(hidden.text) >= _LONG_ENOUGH):
                message = hidden.replaced_in(message)
        return message


def dotted(path: KeyPath) -> str:
    """A key path as one line of text: ``roles.embedding.default[1]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if step.isprintable() else step.encode("unicode_escape").decode("ascii")
            text += f".{shown}" if text else shown
    return text


def raise_problems(label: str, problems: Sequence[Problem]) -> None:
    """Raise all problems as one :class:`ConfigError`, in the order of the file; do nothing where there are none."""
    if not problems:
        return
    lines = [str(problem) for problem in _in_order(problems)]
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    raise ConfigError("\n".join([f"{count} in {label}", *lines]), problems=lines)


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(dict.fromkeys(problems), key=lambda one: (one.line or 0, one.where, one.message))
