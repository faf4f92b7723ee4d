import json

import numpy as np
import pytest


def test_vectors_are_printed_in_full_as_json(vsr, mini):
    body = vsr("embed", "one", "two", "--json").body
    assert np.array(body["vectors"]).shape == (2, 8)
    assert body["dimensions"] == 8
    assert body["envelope"]["backend_id"] == "toy:mini"
    assert [item["tokens"] for item in body["envelope"]["inputs"]] == [3, 3]
    assert body["envelope"]["usage"]["input_tokens"] == 6
    assert body["load_seconds"] > 0


def test_people_see_a_line_per_text_with_its_first_values(vsr, mini):
    lines = vsr("embed", "one", "a longer text").out.splitlines()
    assert lines[2].split()[:4] == ["0", "8", "3", "no"]
    assert lines[3].split()[:4] == ["1", "8", "13", "no"]
    assert ", ..." in lines[2]
    assert lines[-1].startswith("toy:mini in float32: 2 texts, 16 tokens")


def test_an_array_file_holds_the_vectors_as_float32(vsr, mini, tmp_path):
    ran = vsr("embed", "one", "two", "--out", "vectors.npy")
    assert ran.code == 0
    assert "2 x 8 written to vectors.npy" in ran.out
    vectors = np.load(tmp_path / "vectors.npy")
    assert (vectors.shape, vectors.dtype) == ((2, 8), np.float32)
    assert np.allclose(vectors, vsr("embed", "one", "two", "--json").body["vectors"])


def test_a_json_file_holds_what_json_prints(vsr, mini, tmp_path):
    ran = vsr("embed", "one", "--out", "vectors.json", "--json")
    assert "vectors" not in ran.body
    assert ran.body["out"] == "vectors.json"
    written = json.loads((tmp_path / "vectors.json").read_text())
    assert written["schema"] == 1
    assert len(written["vectors"]) == 1


@pytest.mark.parametrize("name", ["gone/vectors.npy", "folder.npy"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_loaded(vsr, mini, tmp_path, monkeypatch, name):
    (tmp_path / "folder.npy").mkdir()
    monkeypatch.setattr("vsr_core.runtime.Runtime.embed", None)
    ran = vsr("embed", "text", "--out", name)
    assert ran.code == 1
    assert "cannot be written" in ran.err


def test_a_file_of_another_kind_is_wrong_usage(vsr, mini):
    ran = vsr("embed", "text", "--out", "vectors.csv")
    assert ran.code == 2
    assert ".npy or .json" in ran.err


@pytest.mark.parametrize("value", ["0", "-1"])
def test_a_time_that_is_none_is_a_message(vsr, mini, value):
    ran = vsr("embed", "text", "--timeout", value)
    assert ran.code == 1
    assert ran.err.startswith("vsr: timeout must be ")


def test_control_characters_of_a_text_do_not_reach_the_terminal(vsr, mini):
    assert "\x1b" not in vsr("embed", "\x1b[31mred").out


def test_markup_in_a_text_is_text(vsr, mini):
    assert "[bold]x[/bold] :smile:" in vsr("embed", "[bold]x[/bold] :smile:").out


def test_a_truncation_nobody_knows_is_a_message(vsr, mini):
    ran = vsr("embed", "text", "--truncate", "middle")
    assert (ran.code, ran.out) == (1, "")
    assert "'error', 'end', 'start', not 'middle'" in ran.err
