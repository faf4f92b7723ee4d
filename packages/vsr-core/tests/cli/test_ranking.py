import pytest
from vsr_core.cli.ranking import shares
from vsr_core.contract import InputReport
from vsr_core.testing import toy


def test_similarity_keeps_the_order_of_the_candidates_in_json(vsr, mini):
    body = vsr("similar", "one", "two", "one", "--json").body
    assert body["function"] == "cosine"
    assert body["scores"][1] == pytest.approx(1.0)
    assert body["scores"][0] < 0.99


def test_people_see_the_closest_first_with_a_bar(vsr, mini):
    lines = vsr("similar", "one", "two", "one").out.splitlines()
    assert lines[2].split() == ["1", "1.0000", "█" * 20, "one"]
    assert lines[3].startswith("0")
    assert lines[-1].startswith("cosine by toy:mini")


def test_candidates_may_come_from_a_file(vsr, mini, tmp_path):
    (tmp_path / "candidates").write_text("two\none\n")
    assert len(vsr("similar", "one", "--file", "candidates", "--json").body["scores"]) == 2


def test_candidates_may_come_from_stdin(vsr, mini):
    assert len(vsr("similar", "one", "--json", stdin=b"a\nb\nc\n").body["scores"]) == 3


def test_no_candidate_is_wrong_usage(vsr, mini):
    assert vsr("similar", "one").code == 2
    assert vsr("rerank", "one").code == 2


def test_documents_are_ranked_best_first(vsr, mini):
    results = vsr("rerank", "one", "two", "one", "three", "--json").body["results"]
    assert (results[0]["index"], results[0]["text"]) == (1, "one")
    assert [item["score"] for item in results] == sorted((item["score"] for item in results), reverse=True)


def test_top_n_cuts_the_answer(vsr, mini):
    assert len(vsr("rerank", "one", "two", "one", "--top-n", "1", "--json").body["results"]) == 1
    ran = vsr("rerank", "one", "two", "--top-n", "0")
    assert ran.code == 1
    assert "top_n" in ran.err


def test_a_truncation_nobody_knows_is_a_message(vsr, mini):
    ran = vsr("rerank", "one", "two", "--truncate", "middle", "--json")
    assert ran.code == 1
    assert ran.error["param"] == "truncate"


def test_texts_that_were_cut_are_counted(vsr, mini, monkeypatch):
    assert "cut" not in vsr("rerank", "one", "two", "three").out
    monkeypatch.setattr(
        toy, "InputReport", lambda **fields: InputReport(**{**fields, "truncated": fields["tokens"] > 3})
    )
    assert "1 of 3 inputs were cut" in vsr("rerank", "one", "two", "three").out
    assert "2 of 3 texts were cut" in vsr("similar", "four", "two", "three").out


def test_a_bar_shows_the_score_itself_where_its_kind_has_a_scale():
    assert shares([0.9, 0.1], kind="cosine") == [0.9, 0.1]
    assert shares([-3.0, 5.0, 1.0], kind="logit") == [0.0, 1.0, 0.5]
    assert shares([2.0, 2.0], kind="logit") == [1.0, 1.0]
    assert shares([], kind="logit") == []
