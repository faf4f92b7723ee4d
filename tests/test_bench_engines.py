"""What the benchmarks do for the engines that read exports: exports, raw loops, aims, cycles, CUDA."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from pydantic import TypeAdapter
from vsr_core.runtime import Runtime

from bench import gpu
from bench.aims import AIMS, outcomes
from bench.contestant import Workplace
from bench.corpus import MAX_TOKENS, load_corpus, model_folder
from bench.cycles import CyclesReport, cycle_variants, cycles_table, growth, idle_share, turn
from bench.environments import ROOT, Interpreters, worker_environ
from bench.exports import Exports
from bench.loop import BUDGETS, GraphLoop
from bench.process import Worker, WorkerError
from bench.protocol import CycleMemory, IdleUse
from bench.report import embed_table
from bench.results import EmbedReport
from bench.summary import RAW_BASELINES, summarise
from bench.variants import VARIANTS, Variant
from tests.bench_reports import DATE, MACHINE, facts, rendered


def result(name, engine, dtype, seconds, cosine):
    return {
        "name": name,
        "label": name,
        "engine": engine,
        "facts": facts(dtype),
        "rounds": [{"seconds": each, "texts": 100, "peak_bytes": None, "others": None} for each in seconds],
        "cosine": {"mean": cosine, "minimum": cosine},
    }


@pytest.fixture
def report():
    recorded = {
        "schema": 1,
        "command": "embed",
        "date": DATE,
        "machine": MACHINE,
        "load_average": [None, None],
        "model": "pkg://somewhere/model",
        "texts": 100,
        "tokens": 6000,
        "truncated_to": 256,
        "variants": [
            result("st-fp32", "torch", "float32", [10.0], 1.0),
            result("raw-onnx", "onnx", "float32", [2.0], 1.0),
            result("vsr-onnx", "onnx", "float32", [2.5], 1.0),
            result("vsr-onnx-int8", "onnx", "int8", [2.0], 0.99499),
            result("vsr-openvino-bf16", "openvino", "bfloat16", [1.0], 1.0),
        ],
        "summary": [],
    }
    read = TypeAdapter(EmbedReport).validate_python
    summary = summarise(read(recorded).variants, tokens=6000)
    return read({**recorded, "summary": [TypeAdapter(type(each)).dump_python(each) for each in summary]})


# exports and raw loops


def test_every_raw_loop_and_every_aim_is_that_of_a_variant():
    names = {variant.name for variant in VARIANTS}
    assert set(RAW_BASELINES.values()) <= names
    assert {aim.variant for aim in AIMS} <= names
    assert {variant.engine for variant in VARIANTS if variant.export is not None} == {"onnx", "openvino"}


def test_an_export_that_cannot_be_made_is_tried_once_and_has_its_reason(tmp_path):
    told = []
    (tmp_path / "export-onnx").mkdir()
    (tmp_path / "export-onnx" / "mine.txt").write_text("in the way")
    exports = Exports(tmp_path, told.append)
    for _ in range(2):
        with pytest.raises(WorkerError, match=r"no export as onnx: .*not empty"):
            exports.find("onnx")
    assert told == ["exporting the model as onnx"]


def test_a_variant_with_an_export_is_refused_where_none_are_made(tmp_path):
    where = Workplace(tmp_path, 15.0, Interpreters(lambda _: None), lambda _: None)
    needy = Variant(name="needy", label="needy", module="bench.no_such_worker", arguments=(), export="onnx")
    with pytest.raises(WorkerError, match="'needy' needs an export"):
        where.start(needy)


class Positions(GraphLoop):
    """Gives each token its id and a one for a vector, and NaN to padding; remembers the sizes of its batches."""

    sizes = ()

    def run(self, batches, store):
        self.sizes = [batch.feeds["input_ids"].size for batch in batches]
        for batch in reversed(batches):
            ids, mask = batch.feeds["input_ids"], batch.feeds["attention_mask"]
            assert not ids[mask == 0].any()
            store(batch, np.stack([ids, np.ones_like(ids)], axis=-1).astype(np.float32))

    def facts(self):
        raise NotImplementedError


@pytest.fixture
def loop(tmp_path):
    (tmp_path / "tokenizer.json").write_bytes((model_folder() / "tokenizer.json").read_bytes())
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    manifest = {"inputs": inputs, "exits": [{"layer": 6, "output": "hidden_6"}], "hidden_size": 2}
    (tmp_path / "vsr_manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return Positions(tmp_path)


def test_a_raw_loop_averages_what_is_no_padding_and_keeps_the_order(loop):
    texts = ["a", "the " * 400, "a b c"]
    together = loop.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(loop.embed([text])[0], vector, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-6)
    assert not np.allclose(together[0], together[2])
    assert loop.count_tokens(texts) == 3 + MAX_TOKENS + 5


def test_a_raw_loop_tries_sizes_of_batches_and_keeps_one(loop):
    sweep = loop.tune(load_corpus(60))
    assert [point.batch_size for point in sweep] == list(BUDGETS)
    assert loop.batch_tokens == min(sweep, key=lambda point: point.seconds).batch_size
    loop.batch_tokens = 256
    loop.embed(["a b c"] * 100)
    assert max(loop.sizes) <= 256


# aims


def test_a_variant_is_held_against_the_raw_loop_of_its_own_engine(report):
    summaries = {summary.name: summary for summary in report.summary}
    assert (summaries["vsr-onnx"].to_raw, summaries["vsr-onnx"].raw_baseline) == (0.8, "raw-onnx")
    assert summaries["vsr-onnx-int8"].to_raw is None
    assert summaries["vsr-openvino-bf16"].to_raw is None  # its loop did not run


def test_aims_are_met_or_missed_by_the_exact_number_and_left_out_without_one(report):
    found = {(each.aim.variant, each.aim.measure): each.met for each in outcomes(report)}
    assert found == {
        ("vsr-onnx", "x raw loop"): False,
        ("vsr-onnx", "x st-fp32"): True,
        ("vsr-openvino-bf16", "x st-fp32"): True,
        ("vsr-onnx-int8", "mean cosine"): False,
    }
    text = rendered(embed_table(report))
    assert "missed" in text
    assert "10.00" in text


# loading and unloading

CYCLING = """
import sys
from bench.protocol import Ask, CycleMemory, Done, IdleUse, Loaded
from bench.serving import serve_session

cycles = 0

def answer(ask):
    global cycles
    match ask.command:
        case "load":
            return Loaded(seconds=0.1, resident_bytes=None)
        case "cycle":
            cycles += 1
            if cycles == 3 and "leaky" in sys.argv:
                sys.exit("out of memory")
            return CycleMemory(seconds=0.1, dtype="float32", loaded_bytes=300, unloaded_bytes=100 + 5 * cycles)
        case "idle":
            return IdleUse(seconds=float(ask.count), processor_seconds=0.5)
        case "close":
            return Done()

serve_session(answer)
"""


@pytest.fixture
def cycling(tmp_path):
    """Where the workers have no model."""
    script = tmp_path / "cycling.py"
    script.write_text(CYCLING, encoding="utf-8")

    class Place(Workplace):
        def start(self, variant):
            command = [sys.executable, str(script), *variant.arguments]
            environ = worker_environ() | {"PYTHONPATH": str(ROOT)}
            return Worker(command, cwd=tmp_path, environ=environ, log=tmp_path / f"{variant.name}.log")

    return Place(tmp_path, 15.0, Interpreters(lambda _: None), lambda _: None)


def test_an_engine_runs_all_cycles_and_is_watched_idling(cycling):
    (sound,) = cycle_variants(("onnx",))
    found = turn(sound, cycling, cycles=4, idle_seconds=2)
    assert found.failure is None
    assert len(found.cycles) == 4
    assert growth(found.cycles) == pytest.approx(120 / 105)
    assert idle_share(found.idle) == 0.25


def test_an_engine_that_fails_keeps_what_was_measured(cycling):
    leaky = Variant(name="leaky", label="leaky", module="", arguments=("leaky",))
    found = turn(leaky, cycling, cycles=4, idle_seconds=2)
    assert found.failure.endswith("out of memory")
    assert len(found.cycles) == 2
    assert found.idle is None


def test_memory_is_held_against_that_of_the_first_cycle():
    def cycles(*unloaded):
        return [CycleMemory(seconds=1, dtype="x", loaded_bytes=None, unloaded_bytes=each) for each in unloaded]

    assert growth(cycles(100, 130, 90)) == 1.3
    assert growth(cycles(None, None)) is None
    assert idle_share(IdleUse(seconds=5.0, processor_seconds=0.1)) == pytest.approx(0.02)
    assert idle_share(None) is None


def test_the_cycle_table_states_aims_and_failures(cycling):
    leaky = Variant(name="leaky", label="leaky", module="", arguments=("leaky",))
    sound = Variant(name="sound", label="sound", module="", arguments=())
    found = [turn(each, cycling, cycles=4, idle_seconds=2) for each in (sound, leaky)]
    recorded = {
        "schema": 1,
        "command": "cycles",
        "date": DATE,
        "machine": MACHINE,
        "load_average": [None, None],
        "versions": {},
        "model": "pkg://somewhere/model",
        "texts": 40,
        "engines": [TypeAdapter(type(each)).dump_python(each) for each in found],
    }
    text = rendered(cycles_table(TypeAdapter(CyclesReport).validate_python(recorded)))
    assert "1.14 missed" in text
    assert "1.05 met" in text
    assert "25.0 missed" in text
    assert "leaky failed" in text


def test_an_unknown_engine_is_refused_before_anything_is_started():
    command = [sys.executable, "-m", "bench", "cycles", "--engines", "steam"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=15, check=False)
    assert done.returncode == 2
    assert "no engine is called 'steam'" in done.stderr


# CUDA


def test_without_cuda_every_number_of_the_gpu_reads_not_run_with_the_reason(monkeypatch):
    monkeypatch.setattr(gpu, "reason_against", lambda _runtime: "no device here")
    report = gpu.run_gpu(["a"], progress=lambda _: None)
    assert {row.not_run for row in report.rows} == {"no device here"}
    text = rendered(gpu.gpu_table(report))
    assert text.count("│ not run") == len(report.rows)
    assert "not run: no device here" in text


def test_with_cuda_there_is_a_value_for_every_number_that_otherwise_is_not_run(monkeypatch):
    monkeypatch.setattr(gpu, "reason_against", lambda _runtime: "no device here")
    names = {row.name for row in gpu.run_gpu(["a"], progress=lambda _: None).rows}
    stand_in = {"adapter": "torch", "precision": "fp32"}
    configured = {
        "catalog": {"minilm": {"source": str(model_folder())}},
        "backends": {"cuda": stand_in, "cpu": stand_in},
    }
    with Runtime(configured) as runtime:
        rows = list(gpu.measure(runtime, ["a cat", "two words more"], lambda _: None))
    assert {row.name for row in rows} == names
    assert not any(row.failed for row in rows)
    assert all(row.value is not None for row in rows)


def test_vectors_of_another_model_or_none_at_all_fail_the_comparison():
    one, other = np.array([[1.0, 0.0]], np.float32), np.array([[0.0, 1.0]], np.float32)
    assert gpu.compare(one, other, one)[0].failed
    assert gpu.compare(np.full_like(one, np.nan), one, one)[0].failed
    assert not any(row.failed for row in gpu.compare(one, one, one))
