"""The commands of ``vsr`` put together, and how a run of one ends."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Final

import typer

from .. import __version__
from ..contract import CONTRACT_VERSION
from ..errors import VsrError
from .checking import check, schema
from .demo import demo
from .doctor import doctor
from .embed import embed
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
from .matrix import matrix
from .models import load, models
from .options import ConfigOption, JsonOption
from .output import print_json
from .plugins import plugins
from .ranking import rerank, similar
from .status import status

__all__ = ["build", "run"]

_COMMANDS: Final[tuple[Callable[..., None], ...]] = (
    demo,
    doctor,
    plugins,
    matrix,
    models,
    status,
    check,
    schema,
    load,
    embed,
    similar,
    rerank,
)


def build() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="vsr",
        help="Ask models for embeddings, similarities and rankings, whichever backend serves them.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["--help", "-h"]},
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(_root)
    for command in _COMMANDS:
        app.command(command.__name__)(command)
    return app


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; whatever goes wrong has been said on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = wants_json(arguments)
    try:
        return _run(arguments)
    except VsrError as error:
        return report_error(error, as_json=as_json)
    except BrokenPipeError:
        _discard_stdout()
        return FAILED
    except Exception as error:  # noqa: BLE001 - whatever else arrives here is a bug, and is reported as one
        if is_usage_error(error):
            return report_usage(error, as_json=as_json)
        if is_full_disk(error):
            _discard_stdout()
            return report_full_disk(error, as_json=as_json)
        return report_bug(error, as_json=as_json)


def _run(arguments: Sequence[str]) -> int:
    command = typer.main.get_command(build())
    try:
        outcome = command.main(list(arguments), prog_name="vsr", standalone_mode=False)
    except SystemExit as stop:  # how rich and click leave where nobody reads the output any more
        _discard_stdout()
        return stop.code if isinstance(stop.code, int) else FAILED
    sys.stdout.flush()
    return outcome if isinstance(outcome, int) else 0


def _root(
    context: typer.Context,
    *,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        _show_version(as_json=as_json)
    elif context.invoked_subcommand is None:
        raise typer.BadParameter("give one; `vsr --help` lists them", context, param_hint="COMMAND")
    given = {"config": config, "as_json": as_json or None}
    defaults = {name: value for name, value in given.items() if value is not None}
    context.default_map = {command.__name__: defaults for command in _COMMANDS}


def _show_version(*, as_json: bool) -> None:
    contract = ".".join(map(str, CONTRACT_VERSION))
    if as_json:
        print_json("version", {"version": __version__, "contract": contract})
    else:
        typer.echo(f"vsr {__version__} (contract {contract}, Python {sys.version.split()[0]})")
    raise typer.Exit


def _discard_stdout() -> None:
    """Keep the interpreter from failing once more when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
