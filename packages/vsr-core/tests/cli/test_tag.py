import pytest
from vsr_core.contract import Span
from vsr_core.testing import toy


def spans(monkeypatch, *places):
    """Have the toy find spans (start, end, label)."""
    monkeypatch.setattr(
        toy,
        "_upper",
        lambda text: tuple(
            Span(start=start, end=end, label=label, score=0.5, text=text[start:end]) for start, end, label in places
        ),
    )


def test_spans_are_printed_with_their_offsets_as_json(vsr, kinds):
    body = vsr("tag", "the WHO and the \u00c4RZTE", "none", "--json").body
    assert body["results"][0]["text"] == "the WHO and the \u00c4RZTE"
    assert body["results"][0]["spans"] == [
        {"start": 4, "end": 7, "label": "UPPER", "score": 1.0, "text": "WHO"},
        {"start": 16, "end": 21, "label": "UPPER", "score": 1.0, "text": "\u00c4RZTE"},
    ]
    assert (body["results"][1]["spans"], body["results"][1]["truncated"]) == ([], False)
    assert body["offset_unit"] == "codepoint"
    assert body["envelope"]["backend_id"] == "toy:names"


def test_people_see_a_line_per_span(vsr, kinds):
    lines = vsr("tag", "the WHO", "none", "IN or OUT").out.splitlines()
    assert lines[0].split() == ["#", "start", "end", "label", "score", "text"]
    assert [line.split() for line in lines[2:5]] == [
        ["0", "4", "7", "UPPER", "1.0000", "WHO"],
        ["2", "0", "2", "UPPER", "1.0000", "IN"],
        ["2", "6", "9", "UPPER", "1.0000", "OUT"],
    ]
    assert lines[-1].startswith("3 spans by toy:names in float32: 3 texts")


def test_a_text_without_a_span_says_so(vsr, kinds):
    assert vsr("tag", "none").out.splitlines()[-1].startswith("0 spans by toy:names")


@pytest.fixture
def terminal(monkeypatch):
    """Write as for a terminal, but without its colours."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


def test_one_text_on_a_terminal_is_shown_with_its_spans_marked(vsr, kinds, terminal):
    assert vsr("tag", "the WHO and EU").out.splitlines()[0] == "the WHO UPPER and EU UPPER"
    assert vsr("tag", "the WHO", "the EU").out.splitlines()[0].startswith("#")


def test_in_a_pipe_the_text_is_not_repeated(vsr, kinds):
    assert vsr("tag", "the WHO").out.splitlines()[0].startswith("#")


def test_of_spans_that_overlap_the_first_is_marked(vsr, kinds, terminal, monkeypatch):
    spans(monkeypatch, (0, 3, "A"), (1, 2, "B"), (3, 5, "C"))
    assert vsr("tag", "abcdef").out.splitlines()[0] == "abc Ade Cf"


def test_markup_and_control_characters_in_a_text_are_text(vsr, kinds, terminal, monkeypatch):
    spans(monkeypatch, (0, 3, "[red]"))
    assert vsr("tag", "[b]x\x07[/b] :smile:").out.splitlines()[0] == "[b] [red]x [/b] :smile:"


def test_texts_that_were_cut_are_counted(vsr, kinds, monkeypatch):
    from vsr_core.contract import InputReport

    monkeypatch.setattr(toy, "InputReport", lambda **fields: InputReport(**{**fields, "truncated": True}))
    assert "2 of 2 texts were cut" in vsr("tag", "a", "b", "--truncate", "end").out


def test_an_aggregation_nobody_knows_is_a_message(vsr, kinds):
    ran = vsr("tag", "a", "--aggregation", "sum")
    assert (ran.code, ran.out) == (1, "")
    assert "'none', 'simple', 'first', 'average', 'max'" in ran.err
