import dataclasses

import pytest
from vsr_core.testing import ToyHandle


def instead(monkeypatch, **fields):
    """Have the toy answer with other fields than it does."""
    label = ToyHandle._label
    monkeypatch.setattr(
        ToyHandle, "_label", lambda *args, **options: dataclasses.replace(label(*args, **options), **fields)
    )


def test_each_text_has_its_whole_result_as_json(vsr, kinds):
    body = vsr("classify", "one", "two", "--json").body
    assert [item["text"] for item in body["results"]] == ["one", "two"]
    for item in body["results"]:
        assert list(item["distribution"]) == ["business", "law", "health", "other"]
        assert item["score"] == item["distribution"][item["label"]]
        assert (item["passed"], item["truncated"], item["tokens"], item["logits"]) == (None, False, 3, None)
    assert body["envelope"]["backend_id"] == "toy:labels"
    assert body["count"] == len(body["envelope"]["inputs"]) == 2


def test_logits_and_the_layer_are_those_asked_for(vsr, kinds):
    body = vsr("classify", "one", "--logits", "--layer", "2", "--json").body
    assert len(body["results"][0]["logits"]) == 4
    assert (body["envelope"]["requested_layer"], body["envelope"]["layer"]) == (2, 2)
    assert "logits" in vsr("classify", "one", "--logits").out.splitlines()[0]
    assert "logits" not in vsr("classify", "one").out


def test_people_see_label_score_bar_and_what_became_of_each_text(vsr, kinds):
    result = vsr("classify", "one", "--json").body["results"][0]
    lines = vsr("classify", "one", "two words").out.splitlines()
    assert lines[0].split() == ["#", "label", "score", "passed", "truncated", "text"]
    shown = lines[2].split()
    assert shown[:3] == ["0", result["label"], f"{result['score']:.4f}"]
    assert shown[3].count("\u2588") == round(20 * result["score"])
    assert shown[4:] == ["-", "no", "one"]
    assert lines[3].endswith("two words")
    assert lines[-1].startswith("toy:labels in float32: 2 texts, 12 tokens")


def test_one_text_is_shown_with_every_label_highest_first(vsr, kinds):
    distribution = vsr("classify", "one", "--json").body["results"][0]["distribution"]
    shown = [line.split()[:2] for line in vsr("classify", "one").out.splitlines()[6:10]]
    falling = sorted(distribution.items(), key=lambda item: -item[1])
    assert shown == [[label, f"{probability:.4f}"] for label, probability in falling]


def test_of_many_labels_ten_are_shown_and_the_others_counted(vsr, kinds, monkeypatch):
    labels = {f"label{number:02}": (number + 1) / 91 for number in range(13)}
    instead(monkeypatch, label="label12", score=labels["label12"], distribution=labels)
    lines = vsr("classify", "one").out.splitlines()
    assert [line.split()[0] for line in lines[6:16]] == [f"label{number:02}" for number in range(12, 2, -1)]
    assert lines[16] == "and 3 more"


def test_without_a_distribution_the_reason_is_shown(vsr, kinds, monkeypatch):
    instead(monkeypatch, score=-3.5, distribution=None, distribution_reason="a regression has none")
    out = vsr("classify", "one").out
    assert "-3.5000" in out
    assert "no distribution: a regression has none" in out


@pytest.mark.parametrize(("threshold", "passed"), [("0.0", "yes"), ("1.0", "no")])
def test_a_result_has_passed_by_the_threshold_of_its_entry(vsr, kinds, write, threshold, passed):
    write(f"catalog:\n  labels: {{source: heads/sequence, threshold: {threshold}}}\n")
    assert vsr("classify", "one").out.splitlines()[2].split()[4] == passed
    assert vsr("classify", "one", "--json").body["results"][0]["passed"] is (passed == "yes")


def test_a_label_is_no_markup_and_no_control_character(vsr, kinds, monkeypatch):
    instead(monkeypatch, label="[red]x\x1b[31m", distribution={"[red]x\x1b[31m": 1.0})
    out = vsr("classify", "one").out
    assert "[red]x" in out
    assert "\x1b" not in out


def test_a_model_for_something_else_is_a_message_with_the_reason(vsr, kinds):
    ran = vsr("classify", "one", "--model", "mini")
    assert (ran.code, ran.out) == (1, "")
    assert "the model is for embedding" in ran.err


@pytest.mark.parametrize("command", ["classify", "tag"])
def test_a_truncation_nobody_knows_is_a_message(vsr, kinds, command):
    ran = vsr(command, "one", "--truncate", "middle", "--json")
    assert ran.code == 1
    assert ran.error["param"] == "truncate"


def test_a_premise_is_held_against_each_hypothesis(vsr, kinds):
    body = vsr("nli", "it rains", "it is wet", "it is dry", "--json").body
    assert [(item["premise"], item["hypothesis"]) for item in body["results"]] == [
        ("it rains", "it is wet"),
        ("it rains", "it is dry"),
    ]
    assert set(body["results"][0]["distribution"]) == {"entailment", "neutral", "contradiction"}
    assert body["envelope"]["backend_id"] == "toy:pairs"


def test_people_see_both_texts_of_a_pair(vsr, kinds):
    lines = vsr("nli", "it rains", "it is wet").out.splitlines()
    assert lines[0].split()[-2:] == ["premise", "hypothesis"]
    assert lines[2].split()[-5:] == ["it", "rains", "it", "is", "wet"]
    assert "1 pair, " in lines[-1]


@pytest.mark.parametrize("source", [["--file", "pairs"], ["--file", "-"], []], ids=["a file", "a dash", "stdin"])
def test_pairs_are_read_with_one_tab_between(vsr, kinds, tmp_path, source):
    data = b"it rains\tit is wet\nit snows\tit is warm\n"
    (tmp_path / "pairs").write_bytes(data)
    results = vsr("nli", *source, "--json", stdin=data).body["results"]
    assert [item["hypothesis"] for item in results] == ["it is wet", "it is warm"]


def test_the_pairs_of_a_file_come_after_those_of_the_arguments(vsr, kinds, tmp_path):
    (tmp_path / "pairs").write_text("c\td\n")
    results = vsr("nli", "a", "b", "--file", "pairs", "--json").body["results"]
    assert [(item["premise"], item["hypothesis"]) for item in results] == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(("line", "tabs"), [("no tab", 0), ("a\tb\tc", 2), ("", 0)])
def test_a_line_that_is_no_pair_is_a_message_with_its_number(vsr, kinds, tmp_path, line, tabs):
    (tmp_path / "pairs").write_text(f"a\tb\n{line}\nc\td\n")
    ran = vsr("nli", "--file", "pairs", "--json")
    assert ran.code == 1
    assert ran.error["param"] == "file"
    assert f"'pairs', line 2: expected two texts with one tab between them, found {tabs} tabs" in ran.error["message"]


@pytest.mark.parametrize("arguments", [["a premise alone"], []])
def test_no_pair_is_wrong_usage(vsr, kinds, arguments):
    assert vsr("nli", *arguments).code == 2
