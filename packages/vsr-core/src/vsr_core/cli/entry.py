"""Where ``vsr`` starts and ends."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections.abc import Sequence
from typing import Final

__all__ = ["main"]

_INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``vsr`` and return its exit code.

    0: done; 1: the answer is no, a check failed, or there is a mistake that can be mended; 2: wrong usage; 70: a bug;
    130: interrupted.

    :param argv: the arguments without the program's name; by default those of the process, whose main program this
        then is.
    """
    _harden(argv)
    try:
        from .running import run  # imported here so that Ctrl-C is quiet from the first moment on

        code = run(argv)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    if argv is None and any(thread.daemon for thread in threading.enumerate()):
        _leave(code)
    return code


def _harden(argv: Sequence[str] | None) -> None:
    """Let no output fail for the sake of its characters, or because there is nobody to read it."""
    if argv is not None:
        return
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for the whole process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _leave(code: int) -> None:
    """End the process at once.

    A daemon thread that still runs, such as a load nobody waits for any more, is deep in native code as a rule, and
    that aborts the process when the interpreter is taken down under it.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
