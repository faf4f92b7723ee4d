"""How a run that failed ends: one message on stderr, as text or as JSON, and an exit code."""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer

from ..errors import NoCandidatesError, VsrError

__all__ = [
    "BUG",
    "DEBUG_VARIABLE",
    "FAILED",
    "USAGE",
    "is_full_disk",
    "is_usage_error",
    "report_bug",
    "report_error",
    "report_full_disk",
    "report_usage",
    "wants_json",
]

FAILED: Final = 1
USAGE: Final = 2
BUG: Final = 70

DEBUG_VARIABLE: Final = "VSR_DEBUG"

_USAGE_ERROR: Final[Any] = typer.BadParameter.__mro__[1]  # typer exports no more of that hierarchy than its leaf


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether ``--json`` is among the arguments; asked of a command line that may not parse."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def is_usage_error(error: Exception) -> bool:
    """Whether the command line itself was wrong."""
    return isinstance(error, _USAGE_ERROR)


def report_error(error: VsrError, *, as_json: bool) -> int:
    """Say what vsr itself refused; the message names the way out."""
    notes: list[str] = getattr(error, "__notes__", [])
    if as_json:
        return _print_json(error.to_dict() | ({"notes": notes} if notes else {}), FAILED)
    lines = [error.message, *(f"  {note}" for note in notes)]
    if isinstance(error, NoCandidatesError):
        lines += [f"  {drop}" for drop in error.drops]
    return _print("\n".join(lines), FAILED)


def report_usage(error: Any, *, as_json: bool) -> int:
    """Say what is wrong with the command line, and where its help is."""
    if as_json:
        return _print_json({"code": "usage", "message": error.format_message(), "retryable": False}, USAGE)
    error.show()
    return USAGE


def report_bug(error: Exception, *, as_json: bool) -> int:
    """Say that something happened which nobody meant to happen.

    The text of a foreign exception may hold anything, secrets included, so its type and place must do.
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {_module(frames[-1].filename)}, line {frames[-1].lineno}" if frames else ""
    what = f"{type(error).__name__}{place}"
    message = f"unexpected {what}; this is a bug in vsr or a plugin, {DEBUG_VARIABLE}=1 shows the traceback"
    if os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0"):
        traceback.print_exception(error, file=sys.stderr)
    if as_json:
        return _print_json({"code": "internal", "message": message, "retryable": False}, BUG)
    return _print(message, BUG)


def is_full_disk(error: Exception) -> bool:
    """Whether there was no room for what was to be written: no bug, whoever wrote it."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def report_full_disk(error: Any, *, as_json: bool) -> int:
    """Say that there was no room, and where if that is known."""
    where = f" for {error.filename!r}" if error.filename is not None else ""
    message = f"the output cannot be written{where}: {error.strerror}"
    if as_json:
        return _print_json({"code": "no_space", "message": message, "retryable": False}, FAILED)
    return _print(message, FAILED)


def _module(filename: str) -> str:
    """The last steps of a file's path: enough to find it, nothing of whose machine it is."""
    return "/".join(filename.replace("\\", "/").split("/")[-3:])


def _print_json(error: Mapping[str, Any], code: int) -> int:
    sys.stderr.write(json.dumps({"schema": 1, "error": error}) + "\n")
    return code


def _print(message: str, code: int) -> int:
    sys.stderr.write(f"vsr: {message}\n")
    return code
