"""The texts a command is given: as arguments, in a file, or on stdin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import typer

from ..errors import InvalidInputError

__all__ = ["gather_texts", "read_lines"]

_STDIN: Final = "-"


def gather_texts(arguments: Sequence[str] | None, file: str | None, *, what: str) -> tuple[str, ...]:
    """The arguments, then the lines of the file; where there is neither, the lines of stdin unless it is a terminal.

    :param what: how the command calls them, for the message where there are none.
    :raises InvalidInputError: the file cannot be read.
    """
    texts = list(arguments or ())
    if file is not None:
        texts += read_lines(file)
    elif not texts and sys.stdin is not None and not sys.stdin.isatty():
        texts += read_lines(_STDIN)
    if not texts:
        raise typer.BadParameter("give some as arguments, with --file, or on stdin", param_hint=what)
    return tuple(texts)


def read_lines(file: str) -> list[str]:
    """The lines of a UTF-8 file, each a text, blank ones too so that line and result stay side by side.

    :param file: a path, or ``-`` for stdin.
    :raises InvalidInputError: it cannot be read, or is not UTF-8.
    """
    name = "stdin" if file == _STDIN else repr(file)
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


def _binary(stream: Any) -> IO[bytes]:
    binary: IO[bytes] = stream.buffer
    return binary
