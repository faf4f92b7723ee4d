"""What pydantic found wrong, said in the words of the configuration, each at its key and with a way out."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from .origin import KeyPath, Origin, Problem

__all__ = ["closest", "explain"]

_EXPECTED: Final[Mapping[str, str]] = {
    "string": "expected text; put it in quotes",
    "int": "expected a whole number",
    "float": "expected a number",
    "decimal": "expected a number",
    "is": "expected a number",  # is_instance_of, is_finite: what Decimal says of other types
    "finite": "expected a finite number",
    "bool": "expected true or false",
    "tuple": "expected a list",
    "list": "expected a list",
    "dict": "expected a mapping",
    "mapping": "expected a mapping",
    "model": "expected a mapping",
}
_BOUND: Final = re.compile(r"greater_than|less_than|too_(?:short|long)")
_KEY: Final = "[key]"


def explain(error: ValidationError, model: type[BaseModel], origin: Origin) -> list[tuple[KeyPath, Problem]]:
    """Every finding as a problem, with the path of what is wrong; the values themselves are never shown."""
    found: list[tuple[KeyPath, Problem]] = []
    for detail in error.errors(include_url=False, include_input=False):
        steps = tuple(detail["loc"])
        path = steps[:-1] if steps and steps[-1] == _KEY else steps
        context = detail.get("ctx", {})
        message, code = _say(detail["type"], detail["msg"], context, steps, model)
        found.append((origin.written(path), origin.problem(path, message, code=code)))
    return found


def closest(name: str, known: Sequence[str], *, cutoff: float = 0.6) -> str:
    """``; did you mean 'x'?`` for the known name nearest to this one, or nothing."""
    matches = get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _say(kind: str, text: str, context: Mapping[str, Any], steps: KeyPath, model: type[BaseModel]) -> tuple[str, str]:
    if kind == "extra_forbidden":
        return "unknown key" + closest(str(steps[-1]), _keys(model, steps[:-1])), "unknown_key"
    if kind == "missing":
        return f"the key {steps[-1]!r} is missing", "missing_key"
    if kind in ("enum", "literal_error"):
        choices = re.findall(r"'([^']*)'", str(context.get("expected", "")))
        if steps[-1] == _KEY:
            return "unknown key" + closest(str(steps[-2]), choices), "unknown_key"
        return f"expected one of {', '.join(map(repr, choices))}", "value"
    if _BOUND.search(kind):
        return text.replace("Input should", "this must").replace("Value should", "this must"), "value"
    return _EXPECTED.get(kind.partition("_")[0], text), "contradiction" if kind == "contradiction" else "value"


def _keys(kind: Any, steps: KeyPath) -> tuple[str, ...]:
    """The keys that the type found along a path knows."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _keys(get_args(kind)[0], steps)
    if origin in (Union, types.UnionType):
        return next((keys for keys in (_keys(one, steps) for one in get_args(kind)) if keys), ())
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if not steps:
            return tuple(kind.model_fields)
        field = kind.model_fields.get(str(steps[0]))
        return _keys(field.annotation, steps[1:]) if field is not None else ()
    if origin is not None and steps:
        inner = get_args(kind)
        return _keys(inner[1] if issubclass(origin, Mapping) else inner[0], steps[1:])
    return ()
