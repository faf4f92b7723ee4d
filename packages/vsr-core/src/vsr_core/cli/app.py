"""The commands of ``vsr`` put together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer

from .. import __version__
from ..contract import CONTRACT_VERSION
from .checking import check, schema
from .classify import classify, nli
from .classify_all import classify_all
from .demo import demo
from .doctor import doctor
from .embed import embed
from .export import export
from .matrix import matrix
from .merge import merge
from .models import load, models
from .options import ConfigOption, JsonOption
from .output import print_json
from .plugins import plugins
from .ranking import rerank, similar
from .status import status
from .tag import tag
from .verify import verify

__all__ = ["build"]

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
    export,
    merge,
    verify,
    embed,
    similar,
    rerank,
    classify,
    classify_all,
    nli,
    tag,
)


def build() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="vsr",
        help="Ask models for embeddings, similarities, rankings, labels and spans, whichever backend serves them.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["--help", "-h"]},
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(_root)
    for command in _COMMANDS:
        app.command(_name(command))(command)
    return app


def _name(command: Callable[..., None]) -> str:
    return command.__name__.replace("_", "-")


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
    context.default_map = {_name(command): defaults for command in _COMMANDS}


def _show_version(*, as_json: bool) -> None:
    contract = ".".join(map(str, CONTRACT_VERSION))
    if as_json:
        print_json("version", {"version": __version__, "contract": contract})
    else:
        typer.echo(f"vsr {__version__} (contract {contract}, Python {sys.version.split()[0]})")
    raise typer.Exit
