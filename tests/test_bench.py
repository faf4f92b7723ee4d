"""The benchmarks' own machinery: statistics, corpus, worker processes and reports. Nothing here measures anything."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from rich.console import Console
from transformers import ModernBertModel  # noqa: F401 - here, since the import alone may take as long as a test may

from bench.contestant import Contestant, Workplace
from bench.corpus import load_corpus
from bench.encoders.contestants import EXIT, FULL, PEER, Runner
from bench.encoders.plot import plot_encoders
from bench.encoders.race import measure_growth, race
from bench.encoders.report import encoders_table
from bench.encoders.results import EncodersReport, problems
from bench.encoders.shapes import SHAPES, write_checkpoint
from bench.encoders.summary import peer_aim, summarise_encoders
from bench.encoders.workloads import MIXED, Workload, memory_lengths, single_workloads, write_ids
from bench.engines import batches_of
from bench.environments import ROOT, Interpreters, worker_environ
from bench.plot import plot_embed
from bench.process import Worker, WorkerError, run_bounded
from bench.protocol import Ask, Done, Loaded, Prepared, RunTime, SingleTimes
from bench.report import embed_table, print_report
from bench.results import EmbedReport, read_report, to_json
from bench.startup import CommandTimes, StartupReport, startup_table
from bench.stats import Spread, paired_ratios, quantile, spread
from bench.summary import cosine_range, summarise
from bench.variants import VARIANTS, Variant, choose
from bench.workers.packed import PackedEngine
from bench.workers.padded import PaddedTransformers

SUBJECT = '''
import sys
from bench.protocol import SubjectFacts
from bench.serving import Subject, serve

class Lengths(Subject):
    """Embeds a text as its length and a one."""
    def __init__(self):
        if "fail-to-load" in sys.argv:
            raise OSError("no weights here")
        print("libraries print to standard output")
    def embed(self, texts):
        if "die" in sys.argv:
            sys.exit("out of memory")
        return [[len(text), 1] for text in texts]
    def count_tokens(self, texts):
        return sum(map(len, texts))
    def facts(self):
        return SubjectFacts(dtype="float32", threads=1, versions={"lengths": "1.0"})

if "sleep" in sys.argv:
    import subprocess, time
    print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, file=sys.stderr, flush=True)
    time.sleep(600)
serve(Lengths)
'''
TEXTS = ["a", "bbb", "cc"]

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


def run_facts(seconds):
    return {"seconds": seconds, "texts": 100, "peak_bytes": 300_000_000, "others": 0.25}


def variant(name, dtype, seconds, **rest):
    return {
        "name": name,
        "label": name,
        "facts": {"dtype": dtype, "threads": 2, "versions": {"torch": "2.13.0"}, "details": {}},
        "tokens": 6000,
        "load_seconds": 1.5,
        "resident_bytes": 200_000_000,
        "rounds": [run_facts(value) for value in seconds],
        "singles": [[0.010, 0.020], [0.012, 0.030]],
        "cosine": {"mean": 0.99999, "minimum": 0.9998},
        **rest,
    }


RECORDED = {
    "schema": 1,
    "command": "embed",
    "date": "2026-01-02T03:04:05+00:00",
    "machine": {"cpu": "A processor", "processors": 2, "memory_bytes": 2**34, "system": "Linux", "python": "3.11.7"},
    "load_average": [0.1, 2.0],
    "model": "pkg://somewhere/model",
    "texts": 100,
    "tokens": 6000,
    "truncated_to": 256,
    "variants": [
        variant("st-fp32", "float32", [4.0, 8.0]),
        variant("raw-fp32", "float32", [2.0, 2.0]),
        variant("vsr-fp32", "float32", [1.0, 2.0]),
        {"name": "vsr-auto", "label": "vsr-auto", "failure": "the process ended with status 1: no torch"},
    ],
    "summary": [],
    "notes": ["raw-fp32 counts 5999 tokens where 6000 were expected"],
}


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
        "facts": variant(name, "float32", [])["facts"],
        "times": [{"workload": key, "rounds": forwards(values)} for key, values in seconds.items()],
        "memory": peaks(added, planned_bytes=planned),
    }


ENCODERS = {
    "schema": 1,
    "command": "encoders",
    "date": RECORDED["date"],
    "machine": RECORDED["machine"],
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


@pytest.fixture
def report() -> EmbedReport:
    recorded = TypeAdapter(EmbedReport).validate_python(RECORDED)
    summary = summarise(recorded.variants, tokens=recorded.tokens)
    return TypeAdapter(EmbedReport).validate_python(
        {**RECORDED, "summary": [TypeAdapter(type(each)).dump_python(each) for each in summary]}
    )


@pytest.fixture
def subject(tmp_path):
    """Starts worker processes around a trivial subject and ends them."""
    script = tmp_path / "subject.py"
    script.write_text(SUBJECT, encoding="utf-8")
    (tmp_path / "texts.json").write_text(json.dumps(TEXTS), encoding="utf-8")
    workers = []

    def start(*arguments):
        environ = worker_environ() | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(script), *arguments]
        workers.append(Worker(command, cwd=tmp_path, environ=environ, log=tmp_path / "log"))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


def load(worker, tmp_path):
    return worker.ask(Ask(command="load", path=str(tmp_path / "texts.json")), Loaded, timeout=15)


def is_running(pid):
    """Whether a process computes still; one that nobody has waited for yet does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def rendered(renderable):
    file = io.StringIO()
    print_report(renderable, Console(file=file))
    return file.getvalue()


# statistics


def test_a_spread_is_a_median_and_the_range_around_it():
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert spread([4.0, 1.0, 2.0, 3.0]).median == 2.5


def test_no_values_have_no_spread_and_no_quantile():
    with pytest.raises(ValueError, match="no values"):
        spread([])
    with pytest.raises(ValueError, match="no quantile"):
        quantile([], 0.5)


def test_a_quantile_lies_between_its_neighbours():
    values = [10.0, 0.0, 20.0, 30.0]
    assert [quantile(values, fraction) for fraction in (0, 0.5, 1)] == [0.0, 15.0, 30.0]


def test_ratios_are_paired_by_round_so_that_a_slow_round_cancels_out():
    assert paired_ratios([10.0, 1.0, 30.0], [5.0, 0.5, 15.0]) == (2.0, 2.0, 2.0)


def test_ratios_of_different_numbers_of_rounds_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        paired_ratios([1.0, 2.0], [1.0])


def test_cosines_do_not_depend_on_the_length_of_vectors(tmp_path):
    np.save(tmp_path / "ours.npy", np.array([[2.0, 0.0], [1.0, 1.0]]))
    np.save(tmp_path / "theirs.npy", np.array([[1.0, 0.0], [1.0, 0.0]]))
    cosine = cosine_range(tmp_path / "ours.npy", tmp_path / "theirs.npy")
    assert cosine.minimum == pytest.approx(0.5**0.5)
    assert cosine.mean == pytest.approx((1 + 0.5**0.5) / 2)


# corpus, variants and batches


def test_the_corpus_gives_its_first_texts_in_order():
    everything = load_corpus(None)
    assert len(everything) == 1998
    assert load_corpus(7) == everything[:7]
    assert len(load_corpus()) == 400


def test_more_texts_than_there_are_is_an_error():
    with pytest.raises(ValueError, match="2000 texts were asked for"):
        load_corpus(2000)


def test_a_corpus_of_another_shape_is_refused(tmp_path):
    (tmp_path / "odd.json").write_text('{"texts": []}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"'odd\.json' is not a JSON list of strings"):
        load_corpus(path=tmp_path / "odd.json")


def test_variants_are_chosen_by_name_and_keep_their_order():
    assert [each.name for each in choose(["vsr-auto", "st-fp32"])] == ["st-fp32", "vsr-auto"]
    assert choose([]) == VARIANTS
    with pytest.raises(ValueError, match="no variant is called 'st'"):
        choose(["st"])


def test_batches_take_texts_by_length_up_to_a_bound_on_padded_tokens():
    lengths = [5, 100, 3, 4, 7]
    assert list(batches_of(lengths, 12)) == [[2, 3], [0], [4], [1]]
    assert sorted(index for batch in batches_of(lengths, 12) for index in batch) == list(range(5))


# worker processes


def test_a_worker_loads_warms_up_and_answers_for_all_texts_and_for_single_ones(subject, tmp_path):
    worker = subject()
    assert load(worker, tmp_path).seconds >= 0
    prepared = worker.ask(Ask(command="prepare"), Prepared, timeout=15)
    assert prepared.tokens == 6
    assert prepared.facts.versions == {"lengths": "1.0"}
    run = worker.ask(Ask(command="run"), RunTime, timeout=15)
    assert run.texts == 3
    assert run.peak_bytes is not None
    assert len(worker.ask(Ask(command="single", count=2), SingleTimes, timeout=15).seconds) == 2


def test_vectors_travel_in_a_file(subject, tmp_path):
    worker = subject()
    load(worker, tmp_path)
    worker.ask(Ask(command="run"), RunTime, timeout=15)
    worker.ask(Ask(command="save", path=str(tmp_path / "vectors.npy")), Done, timeout=15)
    assert np.load(tmp_path / "vectors.npy").tolist() == [[1, 1], [3, 1], [2, 1]]


def test_a_failure_inside_the_subject_is_an_answer_and_the_worker_lives_on(subject, tmp_path):
    worker = subject("fail-to-load")
    for _ in range(2):
        with pytest.raises(WorkerError, match="OSError: no weights here"):
            load(worker, tmp_path)


def test_a_worker_that_ends_early_is_explained_by_the_last_thing_it_wrote(subject, tmp_path):
    worker = subject("die")
    load(worker, tmp_path)
    with pytest.raises(WorkerError, match="ended with status 1: out of memory"):
        worker.ask(Ask(command="run"), RunTime, timeout=15)


def test_a_worker_that_cannot_be_started_says_so(tmp_path):
    with pytest.raises(WorkerError, match="cannot be started"):
        Worker([str(tmp_path / "nothing")], cwd=tmp_path, environ={}, log=tmp_path / "log")


def test_a_worker_out_of_time_is_ended_with_its_children(subject, tmp_path):
    worker = subject("sleep")
    deadline = time.monotonic() + 15
    while not (said := (tmp_path / "log").read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(WorkerError, match="no answer to 'run' within"):
        worker.ask(Ask(command="run"), RunTime, timeout=0.01)
    while is_running(int(said)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(int(said))


def test_a_command_out_of_time_is_ended(tmp_path):
    with pytest.raises(WorkerError, match="took longer than"):
        run_bounded([sys.executable, "-c", "import time; time.sleep(600)"], cwd=tmp_path, environ={}, timeout=0.1)


def test_workers_do_not_inherit_what_belongs_to_this_hatch_environment():
    environ = worker_environ({"UV_OVERRIDE": "overrides.txt", "HATCH_ENV_ACTIVE": "default", "HOME": "/home/someone"})
    assert "UV_OVERRIDE" not in environ
    assert "HATCH_ENV_ACTIVE" not in environ
    assert environ["HOME"] == "/home/someone"


def test_without_hatch_the_peers_fail_with_that_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkerError, match="hatch is not on PATH"):
        Interpreters(lambda _text: None).find("peers")


def test_a_variant_that_fails_leaves_the_race_with_its_reason(tmp_path):
    from contextlib import ExitStack

    told = []
    broken = Variant(name="broken", label="broken", module="bench.no_such_worker", arguments=())
    (tmp_path / "texts.json").write_text(json.dumps(TEXTS), encoding="utf-8")
    with ExitStack() as stack:
        where = Workplace(tmp_path, 15.0, Interpreters(told.append), told.append)
        contestant = Contestant(broken, where, stack)
        contestant.start()
        contestant.measure()
        result = contestant.result(None)
    assert result.failure is not None
    assert "No module named bench.no_such_worker" in result.failure
    assert result.rounds == ()


# reports


def test_a_report_survives_its_file(report, tmp_path):
    (tmp_path / "run.json").write_text(to_json(report), encoding="utf-8")
    assert read_report(tmp_path / "run.json") == report


def test_a_report_of_another_schema_is_refused(report, tmp_path):
    (tmp_path / "old.json").write_text(to_json(report).replace('"schema": 1', '"schema": 0'), encoding="utf-8")
    with pytest.raises(ValueError, match="has schema 0"):
        read_report(tmp_path / "old.json")


def test_throughput_and_ratios_are_medians_over_the_rounds(report):
    facade = next(each for each in report.summary if each.name == "vsr-fp32")
    assert facade.texts_per_second == Spread(75.0, 50.0, 100.0)
    assert facade.tokens_per_second.median == 4500.0
    assert facade.to_peer == 4.0
    assert (facade.to_raw, facade.raw_baseline) == (1.5, "raw-fp32")
    assert facade.single_p50 == pytest.approx(0.016)


def test_a_failed_variant_has_no_summary(report):
    assert [each.name for each in report.summary] == ["st-fp32", "raw-fp32", "vsr-fp32"]


def test_the_table_shows_every_variant_with_its_numbers_or_the_reason_it_failed(report):
    text = rendered(embed_table(report))
    assert "4,500 (3,000 - 6,000)" in text
    assert "0.999990" in text
    assert "0.999800" in text
    assert "vsr-auto failed: the process ended with status 1: no torch" in text
    assert "raw-fp32 counts 5999 tokens" in text
    assert "load average 0.10 before, 2.00 after" in text


def test_the_picture_is_a_png(report, tmp_path):
    assert plot_embed(report, tmp_path / "new" / "run.png").read_bytes().startswith(b"\x89PNG")


def test_start_up_is_compared_run_by_run():
    report = StartupReport(
        schema=1,
        command="startup",
        date="2026-01-02T03:04:05+00:00",
        machine=TypeAdapter(EmbedReport).validate_python(RECORDED).machine,
        load_average=(None, None),
        versions={},
        commands=(
            CommandTimes(name="vsr plugins --json", seconds=(0.2, 0.4, 0.6)),
            CommandTimes(name="import pydantic", seconds=(0.1, 0.2, 0.3)),
            CommandTimes(name="python -c pass", failure="status 1: no python"),
        ),
    )
    text = rendered(startup_table(report))
    assert "200 - 600" in text
    assert "2.00" in text
    assert "python -c pass failed: status 1: no python" in text


def test_an_unknown_variant_is_refused_before_anything_is_started():
    command = [sys.executable, "-m", "bench", "embed", "--variants", "warp-drive"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=15, check=False)
    assert done.returncode == 2
    assert "no variant is called 'warp-drive'" in done.stderr


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
