"""Running a command line, and what becomes of whatever goes wrong."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from ..errors import VsrError
from .failures import (
    FAILED,
    is_full_disk,
    is_usage_error,
    report_bug,
    report_error,
    report_full_disk,
    report_usage,
    wants_json,
)

__all__ = ["run"]


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; whatever goes wrong has been said on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = wants_json(arguments)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except VsrError as error:
        return report_error(error, as_json=as_json)
    except BrokenPipeError:
        _discard_stdout()
        return FAILED
    except SystemExit as stop:  # how rich and click leave where nobody reads the output any more
        _discard_stdout()
        return stop.code if isinstance(stop.code, int) else FAILED
    except Exception as error:  # noqa: BLE001 - whatever else arrives here is a bug, and is reported as one
        if is_usage_error(error):
            return report_usage(error, as_json=as_json)
        if is_full_disk(error):
            _discard_stdout()
            return report_full_disk(error, as_json=as_json)
        return report_bug(error, as_json=as_json)
    return code


def _run(arguments: list[str]) -> int:
    if arguments in (["plugins"], ["plugins", "--json"]):
        return _list_plugins(as_json="--json" in arguments)
    import typer

    from .app import build

    command = typer.main.get_command(build())
    outcome = command.main(arguments, prog_name="vsr", standalone_mode=False)
    return outcome if isinstance(outcome, int) else 0


def _list_plugins(*, as_json: bool) -> int:
    """The one question that scripts ask at every start, without building the other commands and their validators."""
    from .plugins import plugins

    plugins(as_json=as_json)
    return 0


def _discard_stdout() -> None:
    """Keep the interpreter from failing once more when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
