"""The benchmarks' own machinery: statistics, corpus, worker processes and reports. Nothing here measures anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from bench.batches import batches_of
from bench.contestant import Contestant, Workplace
from bench.corpus import load_corpus
from bench.environments import ROOT, Interpreters, worker_environ
from bench.plot import plot_embed
from bench.process import Worker, WorkerError, run_bounded
from bench.protocol import Ask, Done, Loaded, Prepared, RunTime, SingleTimes
from bench.report import embed_table
from bench.results import EmbedReport, read_report, to_json
from bench.startup import CommandTimes, StartupReport, startup_table
from bench.stats import Spread, paired_ratios, quantile, spread
from bench.summary import cosine_range, summarise
from bench.variants import VARIANTS, Variant, choose
from tests.bench_reports import DATE, MACHINE, facts, rendered

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


def run_facts(seconds):
    return {"seconds": seconds, "texts": 100, "peak_bytes": 300_000_000, "others": 0.25}


def variant(name, dtype, seconds, **rest):
    return {
        "name": name,
        "label": name,
        "facts": facts(dtype),
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
    "date": DATE,
    "machine": MACHINE,
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
