from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from vsr_core.errors import ConfigError
from vsr_core.plugins.options import secrets_in, validate_options


@dataclass(frozen=True, kw_only=True)
class Plain:
    base_url: str
    retries: Annotated[int, Field(ge=0)] = 2
    mode: Literal["fast", "exact"] = "exact"
    tags: tuple[str, ...] = field(default_factory=tuple)


class Auth(BaseModel):
    token: SecretStr


class Provider(BaseModel):
    base_url: str
    api_key: SecretStr | None = None
    backup_keys: list[SecretStr] = []
    auth: Auth | None = None
    window: int | None = Field(default=None, alias="context_window")

    @field_validator("api_key")
    @classmethod
    def _check_key(cls, key):
        if key is not None and not key.get_secret_value().startswith("sk-"):
            raise ValueError(f"the key {key.get_secret_value()!r} does not start with sk-")
        return key

    @model_validator(mode="after")
    def _check_pair(self):
        if self.api_key is not None and self.base_url == "plain":
            raise ValueError(f"{self.api_key.get_secret_value()} must not be sent in the clear")
        return self


def problems(model, options):
    with pytest.raises(ConfigError) as caught:
        validate_options(model, options, where="backends.work")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return list(caught.value.problems)


def test_a_dataclass_is_filled_and_its_types_converted():
    value = validate_options(Plain, {"base_url": "here", "retries": "3", "tags": ["a"]}, where="backends.work")
    assert value == Plain(base_url="here", retries=3, tags=("a",))


def test_a_pydantic_model_is_filled_also_by_alias():
    value = validate_options(Provider, {"base_url": "here", "context_window": 7}, where="backends.work")
    assert isinstance(value, Provider)
    assert value.window == 7


def test_an_unknown_option_names_the_nearest_or_all():
    assert problems(Plain, {"base_url": "here", "retrys": 1}) == [
        "backends.work: there is no option 'retrys'; did you mean 'retries'?"
    ]
    assert problems(Plain, {"base_url": "here", "zzz": 1}) == [
        "backends.work: there is no option 'zzz'; known are base_url, mode, retries, tags"
    ]


def test_every_problem_is_reported_at_once_with_its_place():
    found = problems(Plain, {"retries": -1, "mode": "slow", "tag": 1})
    assert [line.partition(": ")[0] for line in found] == [
        "backends.work",
        "backends.work.base_url",
        "backends.work.retries",
        "backends.work.mode",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "here", "api_key": "hunter2"},
        {"base_url": "plain", "api_key": "sk-hunter2"},
        {"base_url": 7, "api_key": "hunter2"},
        {"base_url": "here", "api_key": ["hunter2"]},
        {"base_url": "here", "backup_keys": "hunter2"},
        {"base_url": "here", "auth": {"token": ["hunter2"]}},
        {"base_url": "here", "api_keys": "hunter2"},
    ],
)
def test_no_message_shows_a_secret(options):
    assert "hunter2" not in "\n".join(problems(Provider, options))


def test_secrets_are_found_at_any_depth():
    options = {
        "base_url": "open",
        "api_key": SecretStr("one"),
        "backup_keys": ["two", "three"],
        "auth": {"token": "four"},
    }
    assert sorted(secrets_in(Provider, options)) == ["four", "one", "three", "two"]


@pytest.mark.parametrize("model", [dict, int, None, "Provider", lambda: None])
def test_what_is_no_options_model_is_the_plugins_mistake(model):
    with pytest.raises(TypeError, match="neither a dataclass nor a pydantic model"):
        validate_options(model, {}, where="backends.work")
