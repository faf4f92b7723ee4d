"""Backend ids split at the first colon; roles resolve to groups when they are read."""

import pytest
from vsr_core.contract import BackendId, RoleTable, check_backend_name, check_name
from vsr_core.errors import ConfigError, InvalidInputError, RoleNotFoundError
from vsr_core.taxonomy import Kind


@pytest.mark.parametrize(
    ("text", "backend", "model"),
    [
        ("torch:minilm", "torch", "minilm"),
        ("ollama:llama3.2:3b", "ollama", "llama3.2:3b"),
        ("work:a/b c", "work", "a/b c"),
    ],
)
def test_an_id_is_split_at_its_first_colon(text, backend, model):
    parsed = BackendId.parse(text)
    assert (parsed.backend, parsed.model, str(parsed)) == (backend, model, text)


@pytest.mark.parametrize(
    "text", ["", "torch", ":m", "torch:", "Torch:m", "1a:m", "a:m\n", "a: m", "a b:m", "a:\x00", "a:" + "m" * 400]
)
def test_a_malformed_id_is_refused(text):
    with pytest.raises(InvalidInputError):
        BackendId.parse(text)


@pytest.mark.parametrize("name", ["", "A", "a b", "a:b", "é", "-a", "a" * 64, None, 3])
def test_a_malformed_backend_name_is_refused(name):
    with pytest.raises(ConfigError):
        check_backend_name(name)


@pytest.mark.parametrize("name", ["", "a:b", "a/b", ".a", "a\n", None])
def test_a_role_or_model_name_holds_no_colon_slash_or_space(name):
    with pytest.raises(ConfigError):
        check_name(name)


def test_roles_resolve_in_order_without_repeats():
    table = RoleTable({Kind.EMBEDDING: {"default": ["fast", "torch:b"], "fast": ["torch:a", "torch:b"]}})
    assert [str(item) for item in table.group(Kind.EMBEDDING, "default")] == ["torch:a", "torch:b"]


def test_each_kind_has_its_own_names():
    table = RoleTable({Kind.EMBEDDING: {"default": ["torch:a"]}})
    with pytest.raises(RoleNotFoundError):
        table.group(Kind.GENERATION, "default")


def test_every_problem_is_reported_at_once():
    roles = {
        "a": ["b"],
        "b": ["a"],
        "lost": ["nowhere"],
        "empty": [],
        "many": [f"torch:m{i}" for i in range(6)],
        "bad name": ["torch:a"],
        "odd": ["Torch:x"],
    }
    with pytest.raises(ConfigError) as caught:
        RoleTable({Kind.EMBEDDING: roles})
    problems = "\n".join(caught.value.problems)
    assert "a -> b -> a" in problems
    assert "'nowhere' is neither a backend id nor a role of kind embedding" in problems
    assert "the group is empty" in problems
    assert "has 6 candidates, at most 5" in problems
    assert "'bad name' is no role name" in problems
    assert "'Torch:x' is no backend id" in problems
    assert len(caught.value.problems) == 7


def test_five_candidates_through_nested_roles_are_allowed():
    table = RoleTable({Kind.EMBEDDING: {"x": ["y", "torch:5"], "y": [f"torch:{i}" for i in range(1, 5)]}})
    assert len(table.group(Kind.EMBEDDING, "x")) == 5


def test_roles_that_share_roles_many_times_over_are_read_at_once():
    table = {"r0": ["torch:a"]} | {f"r{i}": [f"r{i - 1}", f"r{i - 1}"] for i in range(1, 20)}
    assert [str(item) for item in RoleTable({Kind.EMBEDDING: table}).group(Kind.EMBEDDING, "r19")] == ["torch:a"]


def test_roles_that_nest_too_deep_are_refused():
    table = {"r0": ["torch:a"]} | {f"r{i}": [f"r{i - 1}"] for i in range(1, 5000)}
    with pytest.raises(ConfigError, match="more than 20 deep"):
        RoleTable({Kind.EMBEDDING: table})


def test_tables_are_compared_by_what_their_roles_stand_for():
    one = RoleTable({Kind.EMBEDDING: {"x": ["y"], "y": ["torch:a"]}})
    assert one == RoleTable({Kind.EMBEDDING: {"x": ["torch:a"], "y": ["torch:a"]}})
    assert one != RoleTable({Kind.EMBEDDING: {"x": ["torch:a"]}})
