"""The texts a command is given: as arguments, in a file, or on stdin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import typer

from ..errors import InvalidInputError

__all__ = ["gather_pairs", "gather_texts", "read_lines"]

_STDIN: Final = "-"


def gather_texts(arguments: Sequence[str] | None, file: str | None, *, what: str) -> tuple[str, ...]:
    """The arguments, then the lines of the file; where there is neither, the lines of stdin unless it is a terminal.

    :param what: how the command calls them, for the message where there are none.
    :raises InvalidInputError: the file cannot be read.
    """
    texts = list(arguments or ())
    place = _place(file, given=bool(texts))
    if place is not None:
        texts += read_lines(place)
    if not texts:
        raise typer.BadParameter("give some as arguments, with --file, or on stdin", param_hint=what)
    return tuple(texts)


def gather_pairs(first: str | None, seconds: Sequence[str] | None, file: str | None) -> tuple[tuple[str, str], ...]:
    """The first text with each of the others, then the lines of the file, each a pair with one tab in it.

    Where there is neither, the lines of stdin unless it is a terminal.

    :raises InvalidInputError: the file cannot be read, or a line is no pair.
    """
    if first is not None and not seconds:
        raise typer.BadParameter("give at least one after the premise", param_hint="HYPOTHESIS")
    pairs = [(first, second) for second in seconds or ()] if first is not None else []
    place = _place(file, given=bool(pairs))
    if place is not None:
        pairs += [_pair(line, number, place) for number, line in enumerate(read_lines(place), start=1)]
    if not pairs:
        raise typer.BadParameter(
            "give a premise and hypotheses, or pairs with --file or on stdin", param_hint="PREMISE"
        )
    return tuple(pairs)


def read_lines(file: str) -> list[str]:
    """The lines of a UTF-8 file, each a text, blank ones too so that line and result stay side by side.

    :param file: a path, or ``-`` for stdin.
    :raises InvalidInputError: it cannot be read, or is not UTF-8.
    """
    name = _name(file)
    try:
        data = _binary(sys.stdin).read() if file == _STDIN else Path(file).read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{name} cannot be read: {error.strerror or error}", param="file") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(
            f"{name}, line {line}: this is not UTF-8; convert the file first", param="file"
        ) from None
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _place(file: str | None, *, given: bool) -> str | None:
    """What to read beside the arguments: the file, or stdin where nothing is given and it is no terminal."""
    if file is None and not given and sys.stdin is not None and not sys.stdin.isatty():
        return _STDIN
    return file


def _pair(line: str, number: int, file: str) -> tuple[str, str]:
    texts = line.split("\t")
    if len(texts) != 2:
        raise InvalidInputError(
            f"{_name(file)}, line {number}: expected two texts with one tab between them, found {len(texts) - 1} tabs",
            param="file",
        )
    return texts[0], texts[1]


def _name(file: str) -> str:
    return "stdin" if file == _STDIN else repr(file)


def _binary(stream: Any) -> IO[bytes]:
    binary: IO[bytes] = stream.buffer
    return binary
