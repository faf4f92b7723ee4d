import io
import sys

import pytest
from vsr_core.cli.activity import watching


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_a_terminal_shows_the_step_and_every_download(terminal):
    with watching("loading a model") as activity:
        activity("weights", 5, 10)
        activity("tokenizer", 1, None)
        activity.step("embedding", total=4)
        activity.advance(2)
    for part in ("loading a model", "weights", "tokenizer", "embedding", "50%"):
        assert part in terminal.getvalue()


def test_nothing_is_written_where_nobody_watches(capsys):
    with watching("loading a model") as activity:
        activity("weights", 10, 10)
        activity.step("embedding", total=4)
        activity.advance(4)
    assert capsys.readouterr() == ("", "")
