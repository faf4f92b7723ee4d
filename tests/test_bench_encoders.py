"""The machinery of the encoder benchmark. Nothing here measures anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from transformers import ModernBertModel  # noqa: F401 - here, since the import alone may take as long as a test may

from bench.contestant import Workplace
from bench.encoders.contestants import EXIT, FULL, PEER, Runner
from bench.encoders.plot import plot_encoders
from bench.encoders.race import measure_growth, race
from bench.encoders.report import encoders_table
from bench.encoders.results import EncodersReport, problems
from bench.encoders.shapes import SHAPES, write_checkpoint
from bench.encoders.summary import peer_aim, summarise_encoders
from bench.encoders.workloads import MIXED, Workload, memory_lengths, single_workloads, write_ids
from bench.environments import ROOT, Interpreters, worker_environ
from bench.process import Worker
from bench.stats import Spread
from bench.variants import Variant
from bench.workers.packed import PackedEngine
from bench.workers.padded import PaddedTransformers
from tests.bench_reports import DATE, MACHINE, facts, rendered

FORWARD = '''
import sys
import numpy as np
from bench.encoders.serving import Forward, serve_forward
from bench.protocol import SubjectFacts

class Means(Forward):
    """Pools ids to their mean, and holds ten megabytes meanwhile."""
    def __init__(self, folder):
        if "fail-to-load" in sys.argv:
            raise OSError("no weights here")
    def pooled(self, sequences):
        if "short-breathed" in sys.argv and max(map(len, sequences)) > 100:
            sys.exit("out of memory")
        ballast = np.ones(10 * 2**20, np.uint8)
        means = np.array([[np.mean(ids) * ballast[0]] for ids in sequences])
        return means + ("shifted" in sys.argv) * 1e-3
    def facts(self):
        return SubjectFacts(dtype="float32", threads=1)
    def planned_bytes(self, lengths):
        return 11 * 2**20

serve_forward(Means)
'''


def forwards(seconds):
    """A workload's rounds of two calls each."""
    return [{"seconds": [value, value], "others": 0.25} for value in seconds]


def peaks(added, **rest):
    return [
        {
            "tokens": tokens,
            "memory": {"resident_bytes": 10**9, "peak_bytes": 10**9 + count, "peak_is_its_own": True, **rest},
        }
        for tokens, count in zip((2048, 4096, 8192), added, strict=True)
    ]


def encoder(name, seconds, added, planned):
    return {
        "name": name,
        "label": name,
        "facts": facts(),
        "times": [{"workload": key, "rounds": forwards(values)} for key, values in seconds.items()],
        "memory": peaks(added, planned_bytes=planned),
    }


ENCODERS = {
    "schema": 1,
    "command": "encoders",
    "date": DATE,
    "machine": MACHINE,
    "load_average": [0.1, 2.0],
    "shape": TypeAdapter(type(SHAPES["base"])).dump_python(SHAPES["base"]),
    "dtype": "float32",
    "workloads": [
        {"name": "2048", "lengths": [2048], "rounds": 2},
        {"name": "8192", "lengths": [8192], "rounds": 2},
        {"name": "mixed", "lengths": MIXED, "rounds": 1},
    ],
    "contestants": [
        encoder(
            FULL, {"2048": [2.2, 1.1], "8192": [5.0, 7.0], "mixed": [4.0]}, [10**7, 2 * 10**7, 4 * 10**7], 5 * 10**7
        ),
        encoder(PEER, {"2048": [2.0, 1.0], "8192": [10.0, 10.0], "mixed": [8.0]}, [10**7, 2 * 10**7, 6 * 10**7], None),
        encoder(EXIT, {"2048": [0.55, 0.22], "8192": [2.0], "mixed": [1.0]}, [10**7, 2 * 10**7, 4 * 10**7], 5 * 10**7),
    ],
    "agreements": [
        {"workload": "2048", "difference": 2e-5, "largest": 0.5},
        {"workload": "8192", "difference": float("nan"), "largest": 0.5},
    ],
    "summary": {"workloads": [], "growth": {}},
}


@pytest.fixture
def encoders() -> EncodersReport:
    read = TypeAdapter(EncodersReport).validate_python
    recorded = read(ENCODERS)
    summary = summarise_encoders(recorded.workloads, recorded.contestants, recorded.agreements)
    return read({**ENCODERS, "summary": TypeAdapter(type(summary)).dump_python(summary)})


@pytest.fixture
def stand_ins(tmp_path):
    """Contestants by name and argument whose workers have no model, and where they run."""
    script = tmp_path / "forward.py"
    script.write_text(FORWARD, encoding="utf-8")

    class Place(Workplace):
        def start(self, variant):
            command = [sys.executable, str(script), *variant.arguments]
            environ = worker_environ() | {"PYTHONPATH": str(ROOT)}
            return Worker(command, cwd=tmp_path, environ=environ, log=tmp_path / f"{variant.name}.log")

    def make(**arguments):
        told = []
        where = Place(tmp_path, 15.0, Interpreters(told.append), told.append)
        names = {"vsr": FULL, "transformers": PEER}
        made = [Variant(name=names[key], label=key, module="", arguments=(value,)) for key, value in arguments.items()]
        return made, where

    return make


# the encoder benchmark


def test_longer_texts_take_fewer_rounds_unless_a_number_is_given():
    assert [(each.rounds, each.calls) for each in single_workloads((32, 2048, 8192))] == [(5, 8), (3, 1), (2, 1)]
    assert [each.rounds for each in single_workloads((32, 8192), rounds=1)] == [1, 1]


def test_memory_is_measured_between_two_and_eight_thousand_tokens_too():
    assert memory_lengths((32, 2048, 8192)) == (32, 2048, 4096, 8192)
    assert memory_lengths((32, 2048)) == (32, 2048)


def test_every_contestant_reads_the_same_ids(tmp_path):
    first = write_ids(MIXED, tmp_path / "a.json", vocabulary=600).read_text()
    assert write_ids(MIXED, tmp_path / "b.json", vocabulary=600).read_text() == first
    sequences = json.loads(first)
    assert tuple(map(len, sequences)) == MIXED
    assert max(map(max, sequences)) < 600


@pytest.fixture
def one_thread():
    """Contestants set torch's number of threads; afterwards it is what it was."""
    before = torch.get_num_threads()
    yield 1
    torch.set_num_threads(before)


def test_the_two_forwards_agree_on_one_text_and_on_a_padded_batch(tmp_path, one_thread):
    folder = write_checkpoint(tmp_path, SHAPES["tiny"])
    ours, early = (PackedEngine(folder, dtype="float32", depth=depth, threads=one_thread) for depth in (None, 1))
    theirs = PaddedTransformers(folder, dtype="float32", threads=one_thread)
    for lengths in [(40,), (5, 90, 40)]:
        sequences = json.loads(write_ids(lengths, tmp_path / "ids.json", vocabulary=600).read_text())
        np.testing.assert_allclose(ours.pooled(sequences), theirs.pooled(sequences), atol=2e-5)
        assert np.abs(early.pooled(sequences) - ours.pooled(sequences)).max() > 0.01


def test_contestants_run_all_rounds_and_their_answers_are_compared(stand_ins, tmp_path):
    variants, where = stand_ins(vsr="shifted", transformers="plain")
    runners = [Runner(each, where, tmp_path) for each in variants]
    workloads = [
        Workload(name="7", lengths=(7,), rounds=2, calls=3),
        Workload(name="mixed", lengths=(5, 90), rounds=1),
    ]
    agreements = race(runners, workloads, where, vocabulary=600)
    assert [each.workload for each in agreements] == ["7", "mixed"]
    assert [each.difference for each in agreements] == pytest.approx([1e-3, 1e-3])
    for runner in runners:
        times = {each.workload: each.rounds for each in runner.result(()).times}
        assert [len(each.seconds) for each in times["7"]] == [3, 3]
        assert len(times["mixed"]) == 1


def test_a_contestant_that_fails_leaves_and_the_other_goes_on(stand_ins, tmp_path):
    variants, where = stand_ins(vsr="plain", transformers="fail-to-load")
    runners = [Runner(each, where, tmp_path) for each in variants]
    assert race(runners, single_workloads((7,), rounds=1), where, vocabulary=600) == ()
    ours, theirs = (runner.result(()) for runner in runners)
    assert (ours.failure, theirs.failure) == (None, "OSError: no weights here")
    assert len(ours.times) == 1


def test_memory_is_that_of_a_pass_in_a_fresh_process(stand_ins, tmp_path):
    variants, where = stand_ins(vsr="plain", transformers="short-breathed")
    found = measure_growth(variants, (50, 200), where, tmp_path, vocabulary=600)
    ours = found[FULL][1]
    assert ours.memory.planned_bytes == 11 * 2**20
    if ours.memory.peak_is_its_own:
        assert 9e6 < ours.added_bytes < 20e6
    assert [each.failure is None for each in found[PEER]] == [True, False]
    assert found[PEER][1].failure.endswith("out of memory")


def test_encoders_are_compared_round_by_round_and_their_memory_by_its_growth(encoders):
    two, eight, mixed = encoders.summary.workloads
    assert two.seconds[FULL] == Spread(pytest.approx(1.65), 1.1, 2.2)
    assert two.to_peer.median == pytest.approx(1.1)
    assert two.exit_to_full == Spread(pytest.approx(0.225), pytest.approx(0.2), pytest.approx(0.25))
    assert eight.to_peer.median == pytest.approx(0.6)
    assert eight.exit_to_full is None  # the exit did not run all rounds
    assert (mixed.texts, mixed.to_peer.median) == (16, 0.5)
    assert encoders.summary.growth == {FULL: 2.0, PEER: 4.0, EXIT: 2.0}


def test_aims_are_stated_for_the_lengths_they_are_meant_for():
    assert [peer_aim(tokens) for tokens in (32, 2048, 4096, 8192)] == [1.05, 1.05, None, 0.60]


def test_the_encoder_tables_state_numbers_aims_and_disagreement(encoders):
    text = rendered(encoders_table(encoders))
    assert "1.10 (1.10 - 1.10)" in text
    assert "1.05 missed" in text
    assert "0.60 met" in text
    assert "vsr packed over transformers padded 2.00" in " ".join(text.split())
    assert "vsr 2.00 met, transformers 4.00" in " ".join(text.split())
    assert "8192: the answers differ by nan" in text


def test_only_float32_answers_have_to_agree(encoders):
    assert problems(encoders) == ("8192: the answers differ by nan, more than 0.0001",)
    assert problems(TypeAdapter(EncodersReport).validate_python({**ENCODERS, "dtype": "bfloat16"})) == ()


def test_the_encoder_picture_is_a_png(encoders, tmp_path):
    assert plot_encoders(encoders, tmp_path / "new" / "run.png").read_bytes().startswith(b"\x89PNG")


def test_lengths_out_of_order_are_refused_before_anything_is_started():
    command = [sys.executable, "-m", "bench", "encoders", "--lengths", "128,32"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=15, check=False)
    assert done.returncode == 2
    assert "lengths must rise, not 128, 32" in done.stderr
