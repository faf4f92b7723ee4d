import pytest
from vsr_core.errors import InferenceError
from vsr_core.testing import ToyHandle

ASKED = ("classify-all", "the WHO", "none", "--task", "labels", "-t", "names")


@pytest.fixture
def broken(monkeypatch):
    """The model ``labels`` of the toy fails."""
    answer = ToyHandle._answer

    def fail(self, request, call):
        if self.info.backend_id.model == "labels":
            raise InferenceError("the toy broke", backend_id="toy:labels")
        return answer(self, request, call)

    monkeypatch.setattr(ToyHandle, "_answer", fail)


def test_each_task_has_its_outcome_as_json(vsr, kinds):
    body = vsr(*ASKED, "--json").body
    assert body["texts"] == ["the WHO", "none"]
    labels, names = body["outcomes"]
    assert (labels["task"], names["task"]) == ("labels", "names")
    alone = vsr("classify", "the WHO", "none", "--model", "labels", "--json").body["results"]
    assert labels["response"]["results"] == [{key: one[key] for key in one if key != "text"} for one in alone]
    assert [span["text"] for span in names["response"]["results"][0]["spans"]] == ["WHO"]
    assert (labels["error"], names["error"], body["shared_layers"]) == (None, None, None)


def test_people_see_a_line_per_text_and_task_and_one_per_span(vsr, kinds):
    lines = vsr(*ASKED).out.splitlines()
    assert lines[0].split()[:4] == ["#", "task", "label", "score"]
    rows = [line.split() for line in lines[2:6]]
    assert [row[:2] for row in rows] == [["0", "labels"], ["0", "names"], ["1", "labels"], ["1", "names"]]
    assert (rows[1][2:4], rows[1][-1]) == (["UPPER", "1.0000"], "WHO")
    assert rows[3][2:4] == ["no", "spans"]
    assert lines[-1].startswith("2 x 2 answers in ")
    assert "ran once" not in lines[-1]


def test_a_task_that_fails_is_told_and_the_others_are_shown(vsr, kinds, broken):
    ran = vsr(*ASKED)
    assert ran.code == 0
    assert "labels failed: the toy broke" in ran.out
    assert "UPPER" in ran.out
    labels, names = vsr(*ASKED, "--json").body["outcomes"]
    assert (labels["response"], names["error"]) == (None, None)
    assert labels["error"]["message"] == "the toy broke"


def test_where_every_task_fails_so_does_the_command(vsr, kinds, broken):
    ran = vsr("classify-all", "a", "--task", "labels")
    assert (ran.code, ran.out) == (1, "")
    assert "the toy broke" in ran.err


def test_at_least_one_task_has_to_be_named(vsr, kinds):
    ran = vsr("classify-all", "a")
    assert (ran.code, ran.out) == (2, "")
    assert "--task" in ran.err


def test_a_task_nobody_knows_is_a_message(vsr, kinds):
    ran = vsr("classify-all", "a", "--task", "nosuch")
    assert ran.code != 0
    assert "nosuch" in ran.err
