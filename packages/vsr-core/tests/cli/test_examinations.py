import pytest
from vsr_core.cli.examinations import engines, examine_engines, examine_speed
from vsr_core.cli.measuring import Timing
from vsr_core.contract import RuntimeInfo
from vsr_core.runtime import BackendStatus, RuntimeStatus


def timing(backend, rate, dtype="float32", device="cpu", **rest):
    return Timing(backend=backend, texts_per_second=rate, dtype=dtype, device=device, **rest)


def status(*backends):
    return RuntimeStatus(pid=1, started_at=0.0, threads=2, backends=backends)


def backend(name, adapter, **found):
    return BackendStatus(name=name, adapter=adapter, runtime=RuntimeInfo(**found))


def test_the_fastest_engine_is_named_with_what_sets_it_apart():
    (finding,) = examine_speed(
        [timing("ort", 100.0), timing("vino", 250.0, "bfloat16"), timing("gpu", 50.0, device="x")]
    )
    assert finding.mark == "ok"
    assert finding.title == "vino is fastest here: 250 texts/s, 2.5 times ort"
    assert "ort: 100 texts/s, float32 on cpu" in finding.details
    assert "why: vino computes in bfloat16, ort in float32, gpu in float32" in finding.details
    assert "why: vino computes on cpu, gpu on x" in finding.details


def test_where_dtype_and_device_are_the_same_no_reason_is_made_up():
    (finding,) = examine_speed([timing("a", 100.0), timing("b", 200.0)])
    assert [line for line in finding.details if line.startswith("why")] == [
        "why: with the same dtype and device as a, what differs is the engine itself"
    ]


def test_a_short_run_tells_no_small_differences_apart():
    (finding,) = examine_speed([timing("a", 100.0), timing("b", 105.0), timing("c", 50.0)])
    assert finding.title == "b and a are about equally fast here, ahead of the rest: some 105 texts/s"
    (finding,) = examine_speed([timing("a", 100.0), timing("b", 105.0)])
    assert finding.title == "b and a are about equally fast here: some 105 texts/s"
    assert not [line for line in finding.details if line.startswith("why")]


def test_the_limits_of_the_measurement_are_stated():
    (finding,) = examine_speed([timing("a", 100.0, reason="asked for")])
    assert finding.title == "a is the only engine that could be timed: 100 texts/s"
    assert "a: 100 texts/s, float32 on cpu (asked for)" in finding.details
    assert "other models and lengths can come out differently" in finding.details[-1]


def test_an_engine_that_could_not_be_timed_is_told_with_its_reason():
    fastest, failed = examine_speed([timing("a", 100.0), Timing(backend="b", failure="no exporter here")])
    assert fastest.mark == "ok"
    assert (failed.mark, failed.title) == ("warn", "b was not timed: no exporter here")
    assert failed.way_out


def test_without_a_measurement_nothing_is_said_to_be_fastest():
    (finding,) = examine_engines(["a", "b"])
    assert finding.title == "a, b: which is fastest here was not measured"
    assert "--measure" in finding.way_out
    (finding,) = examine_engines(["a"])
    assert finding.title == "a is the only engine here"
    assert list(examine_engines([])) == []


@pytest.mark.parametrize("usable", [True, False])
def test_engines_are_what_is_usable_and_has_a_device_each_once(usable):
    state = status(
        backend("first", "toy", usable=True, devices=("cpu",)),
        backend("second", "toy", usable=True, devices=("cpu",)),
        backend("remote", "remote", usable=True),
        backend("other", "other", usable=usable, devices=("cpu",)),
        BackendStatus(name="broken", error="no licence"),
    )
    assert engines(state) == (("toy", "other") if usable else ("toy",))
