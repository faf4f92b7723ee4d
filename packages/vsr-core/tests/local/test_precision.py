"""Float32 unless another dtype is asked for, or ``auto`` finds bf16 native and good enough on the probe texts."""

import pytest
from vsr_core.contract import Preference
from vsr_core.errors import LoadError
from vsr_core.local import Comparison, choose_precision

NATIVE = ("bfloat16",)


def decide(policy, *, native=NATIVE, kind="cosine", worst=1.0):
    return choose_precision(
        Preference.parse(policy),
        native=native,
        place="this CPU",
        backend_id="torch:m",
        compare=lambda: Comparison(kind=kind, worst=worst),
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("fp32", "float32"), ("require:float32", "float32"), ("bf16", "bfloat16"), ("prefer:bfloat16", "bfloat16")],
)
def test_what_is_asked_for_is_taken_without_a_probe(policy, expected):
    found = choose_precision(
        Preference.parse(policy),
        native=NATIVE,
        place="this CPU",
        backend_id="torch:m",
        compare=lambda: pytest.fail("probed"),
    )
    assert (found.requested, found.actual, found.reason) == (str(Preference.parse(policy)), expected, None)


@pytest.mark.parametrize(
    ("kind", "worst", "expected"),
    [
        ("cosine", 0.9991, "bfloat16"),
        ("cosine", 0.9989, "float32"),
        ("probability", 0.0099, "bfloat16"),
        ("probability", 0.0101, "float32"),
    ],
)
def test_auto_computes_in_bf16_only_where_the_probe_allows_it(kind, worst, expected):
    found = decide("auto", kind=kind, worst=worst)
    assert found.actual == expected
    assert f"{worst:.5f}" in found.reason


def test_auto_without_native_bf16_is_float32_and_probes_nothing():
    found = choose_precision(
        Preference(), native=(), place="this CPU", backend_id="torch:m", compare=lambda: pytest.fail("probed")
    )
    assert (found.actual, found.reason) == ("float32", "this CPU does not compute in bfloat16 natively")


@pytest.mark.parametrize(("policy", "native"), [("require:bf16", ()), ("require:int4", NATIVE)])
def test_what_is_required_and_not_to_be_had_is_refused(policy, native):
    with pytest.raises(LoadError, match="is not to be had"):
        decide(policy, native=native)


@pytest.mark.parametrize(
    ("policy", "native", "reason"),
    [("prefer:bf16", (), "does not compute in bfloat16"), ("prefer:int4", NATIVE, "'int4' is no precision")],
)
def test_what_is_preferred_and_not_to_be_had_falls_back_and_says_so(policy, native, reason):
    found = decide(policy, native=native)
    assert found.actual == "float32"
    assert reason in found.reason
