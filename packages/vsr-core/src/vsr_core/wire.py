"""The JSON form of everything that crosses a process border.

One codec for every frozen dataclass of the contract, driven by its annotations: enums travel as their value,
tuples and frozensets as lists, mappings as objects, a ``BackendId`` as its string, an array as
``{"dtype", "shape", "data"}`` with base64 little-endian bytes. A dataclass with a ``tag`` class variable
carries it under ``"type"``, which is how members of a union are told apart. Infinity and NaN are refused.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar, Union, cast

from .errors import InvalidInputError

__all__ = ["from_json", "to_json"]

T = TypeVar("T")


@typing.runtime_checkable
class _TextForm(typing.Protocol):
    """A value with a one-string form, such as a backend id."""

    @classmethod
    def parse(cls, text: str) -> Any: ...


def to_json(value: Any) -> Any:
    """The JSON-ready form of a contract value.

    :raises InvalidInputError: for a value that has none (NaN, infinity, an unknown type).
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(f"{value!r} has no JSON form")
        return value
    if isinstance(value, Decimal | _TextForm):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode_dataclass(value)
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(to_json(item) for item in value)
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):
        return _encode_array(value) if value.shape else to_json(value.item())
    raise InvalidInputError(f"a value of type {type(value).__name__} has no JSON form")


def from_json(kind: type[T], data: object) -> T:
    """Rebuild a value of ``kind`` from what :func:`to_json` gave.

    :raises InvalidInputError: where the data does not have the shape of ``kind``; ``param`` says where.
    """
    return cast("T", _decode(kind, data, kind.__name__))


def _encode_dataclass(value: Any) -> dict[str, Any]:
    tag = getattr(type(value), "tag", None)
    body: dict[str, Any] = {"type": tag} if isinstance(tag, str) else {}
    for field in dataclasses.fields(value):
        body[field.name] = to_json(getattr(value, field.name))
    return body


def _encode_array(value: Any) -> dict[str, Any]:
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return {
        "dtype": value.dtype.name,
        "shape": list(value.shape),
        "data": base64.b64encode(little.tobytes()).decode("ascii"),
    }


def _decode_array(data: object, where: str) -> Any:
    import numpy as np  # only a process that receives arrays needs numpy

    if not isinstance(data, Mapping) or {"dtype", "shape", "data"} - set(data):
        raise InvalidInputError(f"{where}: an array needs dtype, shape and data", param=where)
    try:
        flat = np.frombuffer(base64.b64decode(data["data"]), dtype=np.dtype(data["dtype"]).newbyteorder("<"))
        return flat.astype(np.dtype(data["dtype"])).reshape(tuple(data["shape"]))
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"{where}: not an array: {error}", param=where) from None


def _decode(kind: Any, data: object, where: str) -> Any:
    origin = typing.get_origin(kind)
    if kind is Any or kind is object:
        return data
    if origin in (Union, types.UnionType):
        return _decode_union(typing.get_args(kind), data, where)
    if origin is typing.Literal:
        if data in typing.get_args(kind):
            return data
        raise _mismatch(where, " or ".join(map(repr, typing.get_args(kind))), data)
    if origin is not None:
        return _decode_container(origin, typing.get_args(kind), data, where)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and not issubclass(kind, _TextForm):
        return _decode_dataclass(kind, data, where)
    return _decode_scalar(kind, data, where)


def _decode_scalar(kind: Any, data: object, where: str) -> Any:
    if kind is type(None):
        if data is None:
            return None
        raise _mismatch(where, "null", data)
    if getattr(kind, "__name__", "") == "ndarray":
        return _decode_array(data, where)
    if kind is float and isinstance(data, int | float) and not isinstance(data, bool):
        if not math.isfinite(data):
            raise _mismatch(where, "a finite number", data)
        return float(data)
    if kind in (str, int, bool) and type(data) is kind:
        return data
    if isinstance(kind, type) and issubclass(kind, Enum | Decimal) and isinstance(data, str | int):
        try:
            return next(m for m in kind if m.value == data) if issubclass(kind, Enum) else kind(data)
        except (StopIteration, ArithmeticError):
            raise _mismatch(where, f"a {kind.__name__}", data) from None
    if isinstance(kind, type) and issubclass(kind, _TextForm) and isinstance(data, str):
        return kind.parse(data)
    raise _mismatch(where, f"a {getattr(kind, '__name__', kind)}", data)


def _decode_union(kinds: tuple[Any, ...], data: object, where: str) -> Any:
    if data is None and type(None) in kinds:
        return None
    if isinstance(data, Mapping) and "type" in data:
        tagged = [kind for kind in kinds if getattr(kind, "tag", None) == data["type"]]
        if tagged:
            return _decode(tagged[0], data, where)
        known = sorted(tag for kind in kinds if isinstance(tag := getattr(kind, "tag", None), str))
        if known:
            raise InvalidInputError(
                f"{where}: no type {data['type']!r} here; known are {', '.join(known)}", param=where
            )
    problem = _mismatch(where, "one of the allowed forms", data)
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return _decode(kind, data, where)
        except InvalidInputError as error:
            problem = error
    raise problem


def _decode_container(origin: Any, args: tuple[Any, ...], data: object, where: str) -> Any:
    if getattr(origin, "__name__", "") == "ndarray":
        return _decode_array(data, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(data, Mapping):
            raise _mismatch(where, "an object", data)
        key, item = args or (Any, Any)
        return {_decode_key(key, name, where): _decode(item, value, f"{where}.{name}") for name, value in data.items()}
    if isinstance(origin, type) and dataclasses.is_dataclass(origin):
        return _decode_dataclass(origin, data, where)
    if not isinstance(data, list | tuple):
        raise _mismatch(where, "a list", data)
    if origin is tuple and Ellipsis not in args:
        if len(args) != len(data):
            raise _mismatch(where, f"a list of {len(args)}", data)
        return tuple(
            _decode(kind, item, f"{where}[{i}]") for i, (kind, item) in enumerate(zip(args, data, strict=True))
        )
    items = [_decode(args[0] if args else Any, item, f"{where}[{i}]") for i, item in enumerate(data)]
    return frozenset(items) if origin is frozenset else tuple(items)


def _decode_key(kind: Any, name: object, where: str) -> Any:
    return _decode(
        kind, int(name) if kind is int and isinstance(name, str) and name.lstrip("-").isdigit() else name, where
    )


def _decode_dataclass(kind: Any, data: object, where: str) -> Any:
    if not isinstance(data, Mapping):
        raise _mismatch(where, f"an object ({kind.__name__})", data)
    hints = _hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    tag = getattr(kind, "tag", None)
    unknown = sorted(set(data) - set(fields) - ({"type"} if isinstance(tag, str) else set()))
    if unknown:
        raise InvalidInputError(f"{where}: {kind.__name__} has no field {unknown[0]!r}", param=where)
    if isinstance(tag, str) and data.get("type", tag) != tag:
        raise _mismatch(where, f"type {tag!r}", data.get("type"))
    missing = [name for name, field in fields.items() if name not in data and _required(field)]
    if missing:
        raise InvalidInputError(f"{where}: {kind.__name__} needs {missing[0]!r}", param=where)
    return kind(**{name: _decode(hints[name], data[name], f"{where}.{name}") for name in fields if name in data})


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _mismatch(where: str, wanted: str, got: object) -> InvalidInputError:
    return InvalidInputError(f"{where}: expected {wanted}, got {type(got).__name__}", param=where)
