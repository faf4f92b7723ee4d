import pytest
from vsr_core.cli.output import bar, bytes_text, one_line, seconds_text


def test_a_bar_is_never_longer_than_its_width():
    assert [bar(share, plain=True, width=4) for share in (-1.0, 0.0, 0.5, 1.0, 9.0)] == [
        "....",
        "....",
        "##..",
        "####",
        "####",
    ]


def test_a_text_is_shown_on_one_line():
    assert one_line("a\nb\tc\x1b[0m") == "a b c [0m"
    assert one_line("a longer text", 8) == "a longe…"


@pytest.mark.parametrize(
    ("count", "text"), [(None, None), (0, "0 B"), (1536, "1.5 KiB"), (45_088_768, "43.0 MiB"), (2**34, "16.0 GiB")]
)
def test_bytes_are_told_in_units_people_use(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize(("seconds", "text"), [(None, None), (0.0125, "12.5 ms"), (2.0, "2.00 s")])
def test_durations_are_told_in_units_people_use(seconds, text):
    assert seconds_text(seconds) == text
