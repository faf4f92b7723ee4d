from __future__ import annotations

import pytest
from vsr_core.contract import Choice, Preference
from vsr_core.errors import LoadError
from vsr_openvino.device import candidates, describe, executes_on

WIDE = ("CPU", "GPU.0", "GPU.1", "NPU")


@pytest.mark.parametrize(
    ("policy", "available", "expected"),
    [
        ("auto", ("CPU",), ("CPU",)),
        ("auto", ("CPU", "GPU"), ("GPU", "CPU")),
        ("auto", WIDE, ("GPU.0", "CPU")),
        ("cpu", WIDE, ("CPU",)),
        ("gpu", WIDE, ("GPU.0",)),
        ("require:gpu.1", WIDE, ("GPU.1",)),
        ("prefer:gpu.1", WIDE, ("GPU.1", "CPU")),
        ("prefer:npu", WIDE, ("NPU", "CPU")),
        ("prefer:npu", ("CPU",), ("CPU",)),
    ],
)
def test_a_policy_names_what_is_tried_in_which_order(policy, available, expected):
    assert candidates(Preference.parse(policy), available, backend_id="openvino:m") == expected


@pytest.mark.parametrize("policy", ["npu", "require:gpu", "require:gp"])
def test_what_is_required_and_not_listed_is_refused_with_what_is(policy):
    with pytest.raises(LoadError, match=f"{policy.removeprefix('require:')}.*lists cpu on this host") as caught:
        candidates(Preference.parse(policy), ("CPU",), backend_id="openvino:m")
    assert caught.value.backend_id == "openvino:m"


def test_a_host_without_any_device_is_refused():
    with pytest.raises(LoadError, match="no device to fall back on"):
        candidates(Preference(), (), backend_id="openvino:m")


@pytest.mark.parametrize(
    ("policy", "device", "available", "failures", "expected"),
    [
        ("auto", "CPU", ("CPU",), {}, Choice(requested="auto", actual="cpu")),
        ("cpu", "CPU", ("CPU",), {}, Choice(requested="require:cpu", actual="cpu")),
        ("auto", "GPU", ("CPU", "GPU"), {}, Choice(requested="auto", actual="gpu", reason="OpenVINO lists cpu, gpu")),
        ("prefer:gpu", "GPU.0", WIDE, {}, Choice(requested="prefer:gpu", actual="gpu.0")),
        (
            "prefer:gpu",
            "CPU",
            ("CPU",),
            {},
            Choice(requested="prefer:gpu", actual="cpu", reason="OpenVINO lists cpu on this host, and no 'gpu'"),
        ),
        (
            "prefer:npu",
            "CPU",
            WIDE,
            {"NPU": "sizes vary"},
            Choice(requested="prefer:npu", actual="cpu", reason="npu does not take the model: sizes vary"),
        ),
    ],
)
def test_what_was_asked_for_and_what_came_of_it_are_told_with_the_reason(policy, device, available, failures, expected):
    assert describe(Preference.parse(policy), device, available=available, failures=failures) == expected


@pytest.mark.parametrize(
    ("device", "executing", "expected"),
    [
        ("CPU", ["CPU"], True),
        ("GPU", ["GPU.0"], True),
        ("GPU.0", ["GPU.0"], True),
        ("GPU", ["CPU"], False),
        ("GPU", ["GPU.0", "CPU"], False),
        ("GPU", [], False),
    ],
)
def test_a_model_that_runs_elsewhere_is_noticed(device, executing, expected):
    assert executes_on(device, executing) is expected
