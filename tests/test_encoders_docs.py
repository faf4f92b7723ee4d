"""docs/encoders.md against the product: every example run as it stands, every family and every number of it."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from vsr_core.cli import main
from vsr_core.local.memory import SHARE
from vsr_core.local.tokenize import CHARACTERS_PER_TOKEN, MIN_CHARACTER_CAP
from vsr_core.local.windows import MAX_TOKENS, MAX_WINDOWS, OVERLAP

pytest.importorskip("vsr_candle_torch.engine")

from vsr_candle_torch.adapter import CAPABILITIES
from vsr_candle_torch.attention import _LONG
from vsr_candle_torch.families import BORROWED, OWN
from vsr_core.local import MAX_SHIFT, MIN_COSINE, PROBE_TEXTS

DOCUMENT = (Path(__file__).parents[1] / "docs" / "encoders.md").read_text(encoding="utf-8")
PROSE = " ".join(DOCUMENT.split())
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)


def commands():
    return [block.partition("\n")[::2] for block in blocks("console")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The reader's folder, after every Python example was run in it in order; ``report`` is what differed."""
    place = tmp_path_factory.mktemp("reader")
    (configuration,) = blocks("yaml")
    (place / "vsr.yaml").write_text(configuration, encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks("python")), {}, "encoders.md", None, 0)
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        outcome = doctest.DocTestRunner(verbose=False, optionflags=LENIENT).run(
            examples, out=said.append, clear_globs=False
        )
        examples.globs["vsr"].close()
    return place, outcome, "".join(said)


def test_the_python_examples_give_what_they_show(folder):
    _, outcome, report = folder
    assert outcome.attempted > 20
    assert report == ""


@pytest.mark.parametrize(("command", "shown"), commands(), ids=[command for command, _ in commands()])
def test_a_command_prints_what_is_shown(command, shown, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder[0])
    prompt, program, *arguments = shlex.split(command)
    assert (prompt, program) == ("$", "vsr")
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert doctest.OutputChecker().check_output(shown, printed, LENIENT), printed


def test_every_family_is_listed_with_the_forward_it_has():
    tables = re.findall(r"^\| (`.*) \| (its own, packed|that of transformers) \| (yes|no) \|$", DOCUMENT, re.MULTILINE)
    listed = {
        forward: {name for cell, whose, _ in tables if whose == forward for name in re.findall(r"`(\w+)`", cell)}
        for forward in ("its own, packed", "that of transformers")
    }
    assert listed == {"its own, packed": set(OWN), "that of transformers": set(BORROWED)}
    assert {(whose, exits) for _, whose, exits in tables} == {
        ("its own, packed", "yes"),
        ("that of transformers", "no"),
    }


def test_every_capability_is_listed():
    listed = re.findall(r"^\| [^|]+ \| `(\w+)` \|", DOCUMENT.partition("## ")[0], re.MULTILINE)
    assert sorted(listed) == sorted(map(str, CAPABILITIES))


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("| windows of one text | {:,} |", MAX_WINDOWS),
        ("| tokens read of one text, in windows | {:,} |", MAX_TOKENS),
        ("| characters read of one text | {:,} for each token allowed", CHARACTERS_PER_TOKEN),
        ("for each token allowed, at least {:,} |", MIN_CHARACTER_CAP),
        ("shares a quarter ({}) of its room with the one before it", OVERLAP),
        ("share {} of what is free", SHARE),
        ("Beyond {:,} tokens, memory grows with the length", _LONG),
        ("with a cosine of at least {}", MIN_COSINE),
        ("within {}. Otherwise it computes in float32", MAX_SHIFT),
    ],
)
def test_a_number_is_that_of_the_code(sentence, value):
    assert sentence.format(value) in PROSE


def test_the_number_of_probe_texts_is_that_of_the_code():
    assert len(PROBE_TEXTS) == 10
    assert "on ten probe texts" in PROSE
