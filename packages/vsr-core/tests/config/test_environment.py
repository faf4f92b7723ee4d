"""References to environment variables."""

from __future__ import annotations

import pytest

CANARY = "sk-canary-8d1f"


def test_a_reference_is_replaced_anywhere_in_a_string(load):
    config = load(
        'catalog: {m: {source: "${ROOT}/models/${NAME}"}}\nserver: {port: "${PORT}"}',
        {"ROOT": "/srv", "NAME": "minilm", "PORT": "9000"},
    )
    assert config.catalog["m"].source == "/srv/models/minilm"
    assert config.server.port == 9000


@pytest.mark.parametrize("environ", [{}, {"HOST": ""}])
def test_the_default_stands_in_for_what_is_unset_or_empty(load, environ):
    assert load('server: {host: "${HOST:-localhost}"}', environ).server.host == "localhost"


def test_a_default_may_be_empty(load):
    assert load('catalog: {m: {source: "a${SUFFIX:-}"}}').catalog["m"].source == "a"


def test_a_set_variable_wins_over_the_default(load):
    assert load('server: {host: "${HOST:-localhost}"}', {"HOST": "::1"}).server.host == "::1"


@pytest.mark.parametrize(
    ("written", "meant"), [("$${HOST}", "${HOST}"), ("$HOST", "$HOST"), ("a$b", "a$b"), ("$$", "$$")]
)
def test_what_is_no_reference_stays(load, written, meant):
    assert load(f"server: {{host: '{written}'}}", {"HOST": "x"}).server.host == meant


def test_a_value_is_not_expanded_again(load):
    assert load('server: {host: "${A}"}', {"A": "${B}", "B": "x"}).server.host == "${B}"


def test_an_unset_variable_is_named_with_the_key_and_the_line(refused):
    assert refused('backends:\n  work:\n    adapter: openai\n    api_key: "${WORK_KEY}"\n') == [
        "vsr.yaml:4: backends.work.api_key: the environment variable 'WORK_KEY' is not set and has no default here"
    ]


@pytest.mark.parametrize("written", ["${}", "${1A}", "${A", "${A:+b}", "${A-b}", "${ A }", "${A:-${B}}"])
def test_a_malformed_reference_is_refused(refused, written):
    (problem,) = refused(f"server: {{host: '{written}'}}", {"A": "1", "B": "2"})
    assert problem.startswith("vsr.yaml:1: server.host: a malformed reference")


def test_an_unset_variable_is_the_only_problem_of_its_key(refused):
    (problem,) = refused('server: {port: "${PORT}"}')
    assert "'PORT' is not set" in problem


def test_a_value_from_the_environment_is_never_shown(refused):
    problems = refused(
        """
        server: {port: "${S}"}
        roles:
          embedding:
            default: ["${S}", "${S}:x y ", "x-${S}"]
        backends: {torch: {device: "prefer:${S}:", precision: "${EMPTY}"}}
        prices: {"a:b": {input: "${S}"}}
        """,
        {"S": CANARY, "EMPTY": ""},
    )
    assert len(problems) >= 5
    assert CANARY not in "\n".join(problems)
    assert any("'${S}' is neither a backend id" in problem for problem in problems)


def test_a_short_value_is_hidden_in_messages_about_its_own_key_only(refused):
    problems = refused(
        'roles: {embedding: {default: "${N}", other: ["a:1", "a:2", "a:3", "a:4", "a:5", "a:6"]}}', {"N": "6"}
    )
    assert problems[0].endswith("other: the group has 6 candidates, at most 5 are allowed") or problems[1].endswith(
        "the group has 6 candidates, at most 5 are allowed"
    )
    assert any("'${N}' is neither" in problem for problem in problems)


def test_the_process_environment_is_the_default(write, monkeypatch):
    from vsr_core.config import load_config

    monkeypatch.setenv("VSR_TEST_HOST", "example.test")
    assert load_config(write('server: {host: "${VSR_TEST_HOST}"}')).server.host == "example.test"


def test_keys_are_not_expanded(refused):
    (problem,) = refused('catalog: {"${A}": {source: x}}', {"A": "name"})
    assert "is no catalog name" in problem
