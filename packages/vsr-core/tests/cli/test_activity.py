import io
from contextlib import redirect_stderr

import pytest
from vsr_core.cli.activity import watching


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def test_a_terminal_shows_the_step_and_every_download(terminal):
    with redirect_stderr(terminal), watching("loading a model") as activity:
        activity("weights", 1, 4)
        activity("weights", 2, 4)
        activity("tokenizer", 1, None)
    shown = terminal.getvalue()
    for part in ("loading a model", "weights", "50%", "tokenizer"):
        assert part in shown


def test_the_parts_of_a_step_are_counted(terminal):
    with redirect_stderr(terminal), watching("loading a model") as activity:
        activity.step("embedding", total=4)
        activity.advance(3)
    last = terminal.getvalue().rpartition("embedding")[2]
    assert "75%" in last


def test_nothing_is_written_where_nobody_watches(capsys):
    with watching("loading a model") as activity:
        activity("weights", 10, 10)
        activity.step("embedding", total=4)
        activity.advance(4)
    assert capsys.readouterr() == ("", "")
