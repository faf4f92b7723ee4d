"""The building blocks of the schema: a strict base, and fields that read the short forms an operator writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    SecretStr,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ..contract import BackendId, Preference, check_backend_name, check_name
from ..errors import ConfigError, InvalidInputError

__all__ = [
    "Amount",
    "BackendIdText",
    "BackendName",
    "Count",
    "EntryName",
    "Number",
    "OneOrMany",
    "Options",
    "PreferenceText",
    "RoleName",
    "SealedOptions",
    "Secret",
    "Strict",
    "Text",
    "Whole",
]

T = TypeVar("T")


class Strict(BaseModel):
    """Refuses unknown keys, does not change, and keeps what was written out of its errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _nothing_written(cls, value: Any) -> Any:
        """A key with nothing after it is an empty mapping."""
        return {} if value is None else value


class SealedOptions(Mapping[str, Any]):
    """Options of a plugin, to be validated by its own model. They may hold secrets, so ``repr`` shows the keys alone."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(sorted(self._values))})"


class OneOrMany:
    """Marks a tuple field that may be written as its one item."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_listed, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        many = handler(schema)
        return {"anyOf": [many["items"], many]}


def _listed(value: Any) -> Any:
    if value is None:
        return []
    return [value] if isinstance(value, str | int | float) else value


def _checked(check: Callable[[str], T]) -> Callable[[str], T]:
    """A validator out of a check that raises an error of ours."""

    def validate(text: str) -> T:
        try:
            return check(text)
        except (ConfigError, InvalidInputError) as error:
            raise PydanticCustomError("value", "{reason}", {"reason": error.message}) from None

    return validate


def _preference(value: Any) -> Preference:
    if isinstance(value, Preference):
        return value
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "text")
    return _checked(Preference.parse)(value)


def _no_truth(kind: Literal["int_type", "float_type"]) -> BeforeValidator:
    """Refuses true and false, which pydantic takes for the numbers 1 and 0."""

    def validate(value: Any) -> Any:
        if isinstance(value, bool):
            raise PydanticCustomError(kind, "number")
        return value

    return BeforeValidator(validate)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("value", "may not be empty")
    return text


def _not_blank_secret(secret: SecretStr) -> SecretStr:
    _not_blank(secret.get_secret_value())
    return secret


def _backend_id(text: str) -> str:
    return str(BackendId.parse(text))


Text = Annotated[str, AfterValidator(_not_blank)]
Number = Annotated[float, _no_truth("float_type")]
Whole = Annotated[int, _no_truth("int_type")]
Amount = Annotated[Decimal, _no_truth("float_type")]
Count = Annotated[Whole, Field(ge=1)]
BackendName = Annotated[str, AfterValidator(_checked(check_backend_name))]
EntryName = Annotated[str, AfterValidator(_checked(lambda text: check_name(text, "catalog name")))]
RoleName = Annotated[str, AfterValidator(_checked(lambda text: check_name(text, "role name")))]
BackendIdText = Annotated[str, AfterValidator(_checked(_backend_id))]
PreferenceText = Annotated[Preference, PlainValidator(_preference, json_schema_input_type=str)]
Secret = Annotated[SecretStr, AfterValidator(_not_blank_secret)]
Options = Annotated[Mapping[str, Any], AfterValidator(SealedOptions)]
