"""The taxonomy's axes keep apart, and their codes never change."""

import pytest
from vsr_core.taxonomy import AXES, Capability, Family, Kind, code_of, drift, locked_codes


def test_every_axis_agrees_with_the_committed_lock():
    assert drift(locked_codes()) == []


def test_a_changed_code_is_drift():
    locked = {"kind": {"embedding": 1}}
    assert drift(locked, {"kind": [("embedding", 2)]}) == ["kind: 'embedding' is locked to 1 and now says 2"]


def test_a_removed_member_is_drift():
    assert drift({"kind": {"embedding": 1, "old": 2}}, {"kind": [("embedding", 1)]}) == [
        "kind: 'old' is locked to 2 and was removed"
    ]


def test_a_new_member_must_be_appended_to_the_lock():
    (line,) = drift({"kind": {"embedding": 1}}, {"kind": [("embedding", 1), ("new", 2)]})
    assert line == "kind: 'new' is new: append it to the lock with code 2"


def test_a_new_member_may_not_reuse_a_code():
    lines = drift({"kind": {"a": 1, "b": 2}}, {"kind": [("a", 1), ("b", 2), ("new", 2)]})
    assert "kind: 'new' is new and reuses code 2; new codes start at 3" in lines
    assert "kind: two values share one code" in lines


def test_a_member_a_plugin_brought_has_no_code():
    assert code_of(Family, "bert") == 1
    assert code_of(Family, "mamba") is None


@pytest.mark.parametrize("axis", AXES.values(), ids=AXES)
def test_members_are_their_value_and_carry_a_code(axis):
    for member in axis:
        assert str(member) == member.value == member
        assert axis(member.value) is member
        assert member.code > 0


@pytest.mark.parametrize("capability", Capability)
def test_every_capability_has_a_kind_and_derives_from_nothing_that_is_derived(capability):
    assert isinstance(capability.kind, Kind)
    if capability.derived_from is not None:
        assert capability.derived_from.derived_from is None
