"""Errors carry a stable code, survive pickling, and have a JSON form without secrets or tracebacks."""

import pickle
from pathlib import Path

import pytest
from vsr_core import errors
from vsr_core.errors import (
    BackendError,
    CapabilityUnmetError,
    InputTooLongError,
    LoadError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    VsrError,
    error_codes,
)
from vsr_core.taxonomy import ErrorClass

EXAMPLES = [
    VsrError("plain"),
    InputTooLongError("too long", limit=3, actual=4),
    ModelNotFoundError("no such model", name="x"),
    CapabilityUnmetError("cannot", unmet="embedding", backend_id="a:b", reason="why"),
    OverloadedError("full", backend_id="a:b", retry_after=1.5),
    ProviderError("refused", backend_id="a:b", status=503, error_class=ErrorClass.OVERLOADED),
]


def test_codes_are_unique_and_every_public_error_has_its_own():
    public = {getattr(errors, name) for name in errors.__all__ if name.endswith("Error")}
    assert set(error_codes().values()) >= public
    assert len({error.code for error in public}) == len(public)


def test_the_tree_at_the_top_of_the_module_is_the_tree_of_the_classes():
    names = set(errors.__all__)
    drawn = [word for line in errors.__doc__.splitlines() for word in line.strip(" │├└─").split()[:1] if word in names]
    assert sorted(drawn) == sorted(name for name in names if name.endswith("Error"))


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code)
def test_an_error_survives_pickling_with_its_facts(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.to_dict() == error.to_dict()
    assert str(copy) == str(error)


def test_the_json_form_has_code_message_and_details():
    assert InputTooLongError("too long", limit=3, actual=4, param="texts[0]").to_dict() == {
        "code": "input_too_long",
        "message": "too long",
        "retryable": False,
        "param": "texts[0]",
        "limit": 3,
        "actual": 4,
        "unit": "tokens",
    }


def test_a_backend_error_is_retryable_by_its_class_unless_said_otherwise():
    assert OverloadedError("full", backend_id="a:b").retryable
    assert not LoadError("broken", backend_id="a:b").retryable
    assert BackendError("odd", backend_id="a:b", error_class=ErrorClass.AUTH).retryable is False
    assert LoadError("busy", backend_id="a:b", retryable=True).retryable


def test_the_module_lists_what_it_defines():
    source = Path(errors.__file__).read_text(encoding="utf-8")
    defined = {line.split()[1].split("(")[0] for line in source.splitlines() if line.startswith("class ")}
    assert defined <= set(errors.__all__)
