"""The adapters benchmark: its ratios, its bounds, its table and its picture; and a run of it on a tiny shape."""

import io
import json

import pytest
from rich.console import Console

from bench.adapters.race import KINDS, MERGED, AdapterSettings, gates_of, run_adapters
from bench.adapters.report import adapters_table, plot_adapters
from bench.adapters.results import AdaptersReport, Gate, ServingResult
from bench.encoders.shapes import SHAPES
from bench.machine import describe_machine
from bench.protocol import RunTime
from bench.results import to_json


def serving(name, *, all_six, crowd, memory=100, size=100, **more):
    return ServingResult(
        name=name,
        label=KINDS[name][1],
        bytes=size,
        resident_bytes=memory,
        ones=((0.01, 0.02),),
        alls=tuple((seconds,) for seconds in all_six),
        crowds=tuple(RunTime(seconds=seconds, texts=16, peak_bytes=None, others=0.0) for seconds in crowd),
        **more,
    )


@pytest.fixture
def results():
    return (
        serving(MERGED, all_six=(1.0, 2.0, 4.0), crowd=(10.0, 20.0, 40.0), memory=1000, size=600),
        serving(
            "vsr-adapters", all_six=(0.9, 2.2, 4.0), crowd=(10.0, 25.0, 50.0), memory=260, size=120, difference=2e-6
        ),
        serving("vsr-upper", all_six=(0.5, 1.0, 1.6), crowd=(5.0, 10.0, 20.0)),
    )


def report(results, precision="fp32"):
    return AdaptersReport(
        schema=1,
        command="adapters",
        date="2026-01-01T00:00:00+00:00",
        machine=describe_machine(),
        load_average=(0.0, 0.0),
        shape="tiny",
        precision=precision,
        empty_bytes=0,
        results=results,
        gates=gates_of(results, precision),
    )


def values(results, precision="fp32"):
    return {gate.name: gate.value for gate in gates_of(results, precision)}


def test_ratios_are_medians_of_the_rounds_own(results):
    found = values(results)
    assert found["all six, time over merged"] == 1.0
    assert found["throughput over merged"] == pytest.approx(0.8)
    assert found["upper half: all six, time over merged"] == 0.5
    assert found["upper half: throughput over merged"] == 2.0
    assert found["files over merged"] == 0.2
    assert found["difference of a logit"] == 2e-6


def test_memory_is_held_to_its_bound_in_bf16_alone(results):
    assert values(results, "bf16")["memory over merged"] == 0.26
    assert "memory over merged" not in values(results)
    assert "difference of a logit" not in values(results, "bf16")


def test_a_bound_is_met_missed_or_was_not_measured():
    assert [Gate(name="n", value=value, bound=1.0).met for value in (1.0, 1.1, None)] == [True, False, None]
    assert [Gate(name="n", value=value, bound=1.0, at_most=False).met for value in (1.0, 0.9)] == [True, False]


def test_without_the_merged_models_nothing_is_compared(results):
    assert set(values(results[1:]).values()) == {None, 2e-6}


def test_the_table_and_the_picture_have_every_contestant(results, tmp_path):
    failed = ServingResult(name="peft", label=KINDS["peft"][1], failure="no such module")
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(adapters_table(report((*results, failed))))
    text = console.export_text()
    for said in ("throughput over merged", "MISSED", "peft failed: no such module"):
        assert said in text
    assert plot_adapters(report(results), tmp_path / "a.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="nothing was measured"):
        plot_adapters(report((failed,)), tmp_path / "b.png")


@pytest.mark.timeout(120)
def test_a_tiny_run_measures_adapters_against_merged_models():
    chosen = (MERGED, "vsr-adapters", "vsr-upper")
    settings = AdapterSettings(shape=SHAPES["tiny"], precision="fp32", contestants=chosen, rounds=1)
    found = run_adapters(settings, progress=lambda _: None)
    assert [(each.name, each.failure) for each in found.results] == [(name, None) for name in chosen]
    by_name = {gate.name: gate.value for gate in found.gates}
    assert 0 < by_name["difference of a logit"] < 1e-4
    assert by_name["all six, time over merged"] > 0
    assert json.loads(to_json(found))["command"] == "adapters"
