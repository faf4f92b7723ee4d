"""Roles: their short forms, what they may name, and the groups they become."""

from __future__ import annotations

import pytest
from vsr_core.taxonomy import Kind


def group(config, role: str, kind: Kind = Kind.EMBEDDING) -> list[str]:
    return [str(one) for one in config.roles.group(kind, role)]


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ('"torch:a"', ["torch:a"]),
        ('["torch:a", "onnx:a"]', ["torch:a", "onnx:a"]),
        ('{model: "torch:a"}', ["torch:a"]),
        ('{model: ["torch:a"], fallback: "onnx:a"}', ["torch:a", "onnx:a"]),
        ('{model: "torch:a", fallback: ["onnx:a", "torch:a"]}', ["torch:a", "onnx:a"]),
    ],
)
def test_the_forms_of_a_role(load, written, resolved):
    assert group(load(f"roles: {{embedding: {{default: {written}}}}}"), "default") == resolved


def test_adding_a_fallback_adds_to_the_group(load):
    before = load('roles: {generation: {default: {model: "openai:gpt-4o"}}}')
    after = load('roles: {generation: {default: {model: "openai:gpt-4o", fallback: ["ollama:llama3.2:3b"]}}}')
    assert group(before, "default", Kind.GENERATION) == ["openai:gpt-4o"]
    assert group(after, "default", Kind.GENERATION) == ["openai:gpt-4o", "ollama:llama3.2:3b"]


def test_a_role_may_name_roles_of_its_kind(load):
    config = load('roles: {embedding: {default: [fast, "torch:big"], fast: ["onnx:a", "torch:a"]}}')
    assert group(config, "default") == ["onnx:a", "torch:a", "torch:big"]


def test_a_catalog_name_stands_for_its_backends_in_order(load):
    config = load("catalog: {a: {source: x, backends: [onnx, torch]}}\nroles: {embedding: {default: a}}")
    assert group(config, "default") == ["onnx:a", "torch:a"]


def test_a_role_is_found_before_a_catalog_entry_of_the_same_name(load):
    config = load(
        'catalog: {a: {source: x, backends: [onnx]}}\nroles: {embedding: {default: a, a: "torch:b"}}',
    )
    assert group(config, "default") == ["torch:b"]


def test_a_catalog_name_without_backends_is_refused_with_the_way_out(refused):
    assert refused("catalog: {a: {source: x}}\nroles: {embedding: {default: a}}") == [
        "vsr.yaml:2: roles.embedding.default: the catalog entry 'a' does not say which backend serves it; "
        "write '<backend>:a' here, or list 'backends' in the entry"
    ]


def test_an_unknown_target_is_refused_with_the_nearest_name(refused):
    assert refused(
        'roles:\n  embedding:\n    fast: "torch:a"\n    default:\n      model: "torch:b"\n      fallback:\n        - fasst\n'
    ) == [
        "vsr.yaml:7: roles.embedding.default.fallback[0]: 'fasst' is neither a backend id, nor a role of kind "
        "embedding, nor in the catalog; did you mean 'fast'?"
    ]


def test_a_role_of_another_kind_is_unknown(refused):
    (problem,) = refused('roles: {embedding: {default: "torch:a"}, reranking: {other: default}}')
    assert "'default' is neither a backend id, nor a role of kind reranking" in problem


def test_a_malformed_backend_id_is_refused(refused):
    assert refused('roles: {embedding: {default: ":a"}}') == [
        "vsr.yaml:1: roles.embedding.default: ':a' is no backend id: expected '<backend>:<model>'"
    ]


def test_a_cycle_is_refused(refused):
    problems = refused("roles:\n  embedding:\n    a: b\n    b: a\n")
    assert problems[0] == "vsr.yaml:2: roles.embedding: roles name each other in a cycle: a -> b -> a"


def test_a_group_over_five_is_refused(refused):
    assert refused('roles: {embedding: {default: ["t:1", "t:2", "t:3", "t:4", "t:5", "t:6"]}}') == [
        "vsr.yaml:1: roles.embedding.default: the group has 6 candidates, at most 5 are allowed"
    ]


@pytest.mark.parametrize("written", ["[]", "{model: []}"])
def test_an_empty_group_is_refused(refused, written):
    assert refused(f"roles: {{embedding: {{default: {written}}}}}") == [
        "vsr.yaml:1: roles.embedding.default: the group is empty"
    ]


def test_a_role_must_be_one_of_the_forms(refused):
    (problem,) = refused("roles: {embedding: {default: 5}}")
    assert problem.endswith("expected a backend id, a list of them, or a mapping with 'model'")


def test_a_malformed_role_name_is_refused(refused):
    (problem,) = refused('roles: {embedding: {"a:b": "torch:a"}}')
    assert "'a:b' is no role name" in problem


def test_naming_a_broken_role_or_entry_is_no_second_problem(refused):
    problems = refused(
        """
        catalog: {a: {source: 3}}
        roles:
          embedding: {default: [broken, a], broken: {modle: "torch:a"}}
        """
    )
    assert [problem.split(": ")[1] for problem in problems] == [
        "catalog.a.source",
        "roles.embedding.broken",
        "roles.embedding.broken.modle",
    ]
