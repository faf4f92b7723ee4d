"""The sections of a configuration that travel as they are: routing, signals, tenants, ledger, server; and prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from ..contract import Price
from ..taxonomy import Kind
from .fields import Amount, Count, Number, OneOrMany, Options, RoleName, Secret, Strict, Text, Whole

__all__ = [
    "LedgerSettings",
    "LimitSettings",
    "PluginSection",
    "Policies",
    "PolicySettings",
    "PriceSettings",
    "RoutingSettings",
    "ServerSettings",
    "SignalSettings",
    "TenantSettings",
]


class PolicySettings(Strict):
    """A routing policy that is to act, with the options its own model validates."""

    name: Text = Field(description="The policy's name.")
    options: Options = Field(default_factory=dict, validate_default=True, description="Options of the policy.")


def _policy(value: Any) -> Any:
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, options),) = value.items()
        return {"name": name, "options": {} if options is None else options}
    raise PydanticCustomError("value", "expected a policy's name, or one name with a mapping of its options")


Policies = tuple[
    Annotated[PolicySettings, BeforeValidator(_policy, json_schema_input_type=str | dict[str, dict[str, Any] | None])],
    ...,
]


class LimitSettings(Strict):
    """How much the attempt loop may do for one request."""

    max_attempts: Annotated[Count, Field(le=20)] = Field(
        default=5, description="Attempts one request may cost in all, retries of one candidate included."
    )
    timeout: Number | None = Field(
        default=None,
        gt=0,
        le=1e7,
        description="Seconds a request may take where its caller sets no timeout; none by default.",
    )


class RoutingSettings(Strict):
    """How a candidate is chosen for every request."""

    policies: Policies = Field(
        default=(), description="Policies in the order they act: a name, or a name with its options."
    )
    router: Text = Field(default="default", description="The router that has the last word on the order.")
    limits: LimitSettings = Field(
        default_factory=LimitSettings, description="How much the attempt loop may do for one request."
    )


class SignalSettings(Strict):
    """A value a model computes about a request before candidates are chosen."""

    role: RoleName = Field(description="The role whose model computes the signal.")
    kind: Literal[Kind.CLASSIFICATION, Kind.TOKEN_CLASSIFICATION, Kind.GUARD] = Field(
        default=Kind.CLASSIFICATION, description="The kind of that role."
    )
    threshold: Number = Field(default=0.5, ge=0, le=1, description="The score from which the signal counts as given.")
    positive: Annotated[tuple[Text, ...], OneOrMany()] = Field(
        default=(), description="The labels that count; every label by default."
    )
    on_error: Literal["allow", "block"] = Field(
        default="block", description="What becomes of the request where the signal cannot be computed."
    )


_Dollars = Annotated[Amount, Field(ge=0)] | None


class PriceSettings(Strict):
    """US dollars per million tokens, and per request; what is not stated is unknown, never free."""

    input: _Dollars = Field(default=None, description="US dollars per million input tokens.")
    output: _Dollars = Field(default=None, description="US dollars per million output tokens.")
    cached_input: _Dollars = Field(default=None, description="US dollars per million input tokens read from a cache.")
    cache_write: _Dollars = Field(default=None, description="US dollars per million input tokens written to a cache.")
    reasoning: _Dollars = Field(default=None, description="US dollars per million reasoning tokens.")
    per_request: _Dollars = Field(default=None, description="US dollars per request, whatever its size.")

    def to_price(self) -> Price:
        """The price as the contract states it."""
        return Price(**{name: getattr(self, name) for name in type(self).model_fields})


class TenantSettings(Strict):
    """Which models a tenant may use; patterns of backend ids such as ``openai:*``."""

    allow: Annotated[tuple[Text, ...], OneOrMany()] | None = Field(
        default=None, description="Patterns of the backend ids the tenant may use; every one where this is left out."
    )
    deny: Annotated[tuple[Text, ...], OneOrMany()] = Field(
        default=(), description="Patterns of the backend ids the tenant may not use, whatever is allowed."
    )


class LedgerSettings(Strict):
    """Where attempt records are kept."""

    url: Secret | None = Field(
        default=None, description="Database URL of the ledger; records are kept in memory where it is left out."
    )


class ServerSettings(Strict):
    """How ``vsr serve`` listens."""

    host: Text = Field(default="127.0.0.1", description="Address to listen on.")
    port: Whole = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    api_keys: Annotated[tuple[Secret, ...], OneOrMany()] = Field(
        default=(), description="Keys a caller must present one of; without any, callers are not asked."
    )


class PluginSection(Strict):
    """Which plugins may be imported, and who wins where two claim one name."""

    only: Annotated[tuple[Text, ...], OneOrMany()] | None = Field(
        default=None, description="The plugins or distributions that may be imported; all where this is left out."
    )
    disabled: Annotated[tuple[Text, ...], OneOrMany()] = Field(
        default=(), description="The plugins or distributions that may not be imported."
    )
    precedence: Mapping[str, Text] = Field(
        default_factory=dict, description="Contested name, and the plugin whose contribution is used."
    )
    strict: bool = Field(
        default=False, description="Whether a plugin that fails is an error even where nothing needs it."
    )
    timeout: Number = Field(default=10.0, gt=0, le=3600, description="Seconds each stage of each plugin may take.")
