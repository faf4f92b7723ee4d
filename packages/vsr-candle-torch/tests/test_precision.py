"""Auto computes in bf16 only where the CPU does so natively and the model's own vectors allow it."""

import numpy as np
import pytest
import torch
from vsr_candle_torch import precision
from vsr_candle_torch.precision import Comparison, choose, cosines, probability_shifts
from vsr_core.contract import Preference
from vsr_core.errors import LoadError

GOOD = np.eye(4, dtype=np.float32)


def pick(policy, *, native=True, half=GOOD, monkeypatch):
    monkeypatch.setattr(precision, "native_bfloat16", lambda: native)
    found = Comparison(kind="cosine", worst=min(cosines(GOOD, half)))
    return choose(Preference.parse(policy), backend_id="torch:m", compare=lambda: found)


def test_auto_takes_bf16_where_every_probe_text_agrees(monkeypatch):
    found = pick("auto", monkeypatch=monkeypatch)
    assert found.dtype is torch.bfloat16
    assert (found.choice.requested, found.choice.actual) == ("auto", "bfloat16")
    assert "1.00000" in found.choice.reason


@pytest.mark.parametrize(
    "half",
    [
        GOOD[[0, 1, 2, 2]],
        np.where(GOOD > 0, np.nan, GOOD),
        np.zeros_like(GOOD),
        GOOD + 0.1,
    ],
    ids=["one text apart", "not finite", "zero", "all a little apart"],
)
def test_auto_stays_with_fp32_where_any_does_not_and_says_so(monkeypatch, half):
    found = pick("auto", half=half.astype(np.float32), monkeypatch=monkeypatch)
    assert found.dtype is torch.float32
    assert found.choice.reason.endswith("and the bound is 0.999")


@pytest.mark.parametrize(
    ("activation", "half", "good"),
    [
        ("softmax", [4.0, 0.0], True),
        ("softmax", [4.01, 0.0], True),
        ("softmax", [0.2, 0.0], False),
        ("softmax", [1004.0, 1000.0], True),
        ("softmax", [np.nan, 0.0], False),
        ("sigmoid", [4.0, 0.1], False),
        ("sigmoid", [4.0, 0.001], True),
        ("none", [4.03, 0.0], True),
        ("none", [4.2, 0.0], False),
    ],
)
def test_a_head_is_judged_by_its_probabilities(monkeypatch, activation, half, good):
    monkeypatch.setattr(precision, "native_bfloat16", lambda: True)
    logits = [np.array([4.0, 0.0], np.float32), np.zeros((3, 2), np.float32)]
    shifts = probability_shifts(logits, [np.array(half, np.float32), logits[1]], activation=activation)
    found = choose(
        Preference(), backend_id="torch:m", compare=lambda: Comparison(kind="probability", worst=max(shifts))
    )
    assert found.dtype is (torch.bfloat16 if good else torch.float32)
    assert "largest change of a probability" in found.choice.reason


def test_auto_stays_with_fp32_without_native_bf16_and_probes_nothing(monkeypatch):
    monkeypatch.setattr(precision, "native_bfloat16", lambda: False)
    found = choose(Preference(), backend_id="torch:m", compare=lambda: pytest.fail("probed"))
    assert (found.dtype, found.choice.reason) == (torch.float32, "this CPU has no native bf16")


@pytest.mark.parametrize(
    ("policy", "dtype"),
    [("fp32", torch.float32), ("require:bfloat16", torch.bfloat16), ("prefer:bf16", torch.bfloat16)],
)
def test_what_is_named_is_taken(monkeypatch, policy, dtype):
    assert pick(policy, half=GOOD * 0, monkeypatch=monkeypatch).dtype is dtype


@pytest.mark.parametrize(("policy", "native"), [("require:bf16", False), ("require:int4", True)])
def test_what_is_required_and_not_to_be_had_is_refused(monkeypatch, policy, native):
    with pytest.raises(LoadError, match="is not to be had"):
        pick(policy, native=native, monkeypatch=monkeypatch)


@pytest.mark.parametrize(("policy", "native"), [("prefer:bf16", False), ("prefer:int4", True)])
def test_what_is_preferred_and_not_to_be_had_falls_back_and_says_so(monkeypatch, policy, native):
    found = pick(policy, native=native, monkeypatch=monkeypatch)
    assert found.dtype is torch.float32
    assert found.choice.reason
