"""Texts are checked before anybody tokenises them."""

import pytest
from vsr_core.contract import (
    EmbeddingRequest,
    InferenceRequest,
    Preference,
    check_texts,
)
from vsr_core.errors import ConfigError, InvalidInputError
from vsr_core.taxonomy import Capability


def test_one_string_is_one_text():
    assert check_texts("a") == ("a",)


@pytest.mark.parametrize("texts", [[""], [" \t\n"], ["\x00"], ["日本 😀", "e\u0301"], ["\u202eabc"]])
def test_blank_control_and_any_unicode_text_is_text(texts):
    assert check_texts(texts) == tuple(texts)


@pytest.mark.parametrize(
    ("texts", "param"),
    [
        ([], "texts"),
        (None, "texts"),
        (3, "texts"),
        ({"a": 1}, "texts"),
        (b"bytes", "texts"),
        (["a", None], "texts[1]"),
        ([["a"]], "texts[0]"),
        (["ok", "bad \ud800"], "texts[1]"),
    ],
)
def test_anything_else_is_refused_by_the_place_it_stands_in(texts, param):
    with pytest.raises(InvalidInputError) as caught:
        check_texts(texts)
    assert caught.value.param == param


def test_every_request_names_the_capability_it_asks_for():
    pending, seen = [InferenceRequest], set()
    while pending:
        for request in pending.pop().__subclasses__():
            pending.append(request)
            seen.add(request.capability)
    assert seen == {item for item in Capability if item.derived_from is None and item is not Capability.ADAPTER_SERVING}


def test_requests_are_values():
    assert EmbeddingRequest(texts=("a",)) == EmbeddingRequest(texts=("a",))
    assert hash(EmbeddingRequest(texts=("a",))) == hash(EmbeddingRequest(texts=("a",)))


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("auto", Preference()),
        ("cpu", Preference("require", "cpu")),
        ("prefer:cuda:0", Preference("prefer", "cuda:0")),
        ("require:bf16", Preference("require", "bf16")),
    ],
)
def test_a_policy_is_read_from_text(text, policy):
    assert Preference.parse(text) == policy


@pytest.mark.parametrize("text", ["", " ", "prefer:", "maybe:x", ":x"])
def test_a_malformed_policy_is_refused(text):
    with pytest.raises(ConfigError):
        Preference.parse(text)
