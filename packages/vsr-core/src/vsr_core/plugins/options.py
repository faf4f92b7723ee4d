"""A backend instance's options, checked against the model its plugin names, without ever showing a secret."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr, TypeAdapter, ValidationError

from ..errors import ConfigError
from .isolation import mask

__all__ = ["secrets_in", "validate_options"]


def validate_options(model: Any, options: Mapping[str, object], *, where: str) -> object:
    """An instance of the options model.

    :param model: a dataclass or a pydantic model.
    :param where: names the options in messages, such as ``backends.work``.
    :raises ConfigError: unknown, missing or malformed options, every one of them in ``problems``.
    :raises TypeError: ``model`` is neither a dataclass nor a pydantic model.
    """
    fields = _fields(model)
    problems = [
        f"{where}: there is no option {name!r}{_nearest(name, fields)}"
        for name in sorted(options)
        if name not in fields
    ]
    value: object = None
    try:
        value = TypeAdapter(model).validate_python({name: options[name] for name in options if name in fields})
    except ValidationError as error:
        hidden = tuple(secrets_in(model, options))
        for problem in error.errors(include_input=False, include_url=False, include_context=False):
            place = ".".join(map(str, (where, *problem["loc"])))
            problems.append(f"{place}: {mask(problem['msg'], hidden)}")
    if problems:
        raise ConfigError("\n".join(problems), problems=problems) from None
    return value


def secrets_in(model: object, options: Mapping[str, object]) -> Iterator[str]:
    """Every text given for an option whose type holds secrets."""
    fields = _fields(model)
    for name, value in options.items():
        if _is_secret(fields.get(name), set()):
            yield from _texts(value)


def _fields(model: object) -> Mapping[str, Any]:
    """Every option by the names that are accepted for it, with its type."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        named = {name: field.annotation for name, field in model.model_fields.items()}
        aliases = {
            alias: field.annotation
            for field in model.model_fields.values()
            if isinstance(alias := field.validation_alias, str)
        }
        return named | aliases
    if isinstance(model, type) and dataclasses.is_dataclass(model):
        hints = typing.get_type_hints(model, include_extras=True)
        return {field.name: hints[field.name] for field in dataclasses.fields(model) if field.init}
    raise TypeError(f"the options model is {model!r}, neither a dataclass nor a pydantic model")


def _is_secret(hint: Any, seen: set[Any]) -> bool:
    if hint in (SecretStr, SecretBytes):
        return True
    if isinstance(hint, type) and hint not in seen and (dataclasses.is_dataclass(hint) or issubclass(hint, BaseModel)):
        return any(_is_secret(inner, seen | {hint}) for inner in _fields(hint).values())
    return any(_is_secret(inner, seen) for inner in typing.get_args(hint))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _nearest(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else f"; known are {', '.join(sorted(known)) or 'none'}"
