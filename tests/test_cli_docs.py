"""docs/cli.md against the program: every command with its options, exit codes, and the shape of its JSON."""

import json
import re
from pathlib import Path

import pytest
import typer
from vsr_core.cli import main
from vsr_core.cli.app import build
from vsr_core.cli.failures import BUG, FAILED, USAGE
from vsr_core.testing import write_bert, write_encoder

DOCUMENT = (Path(__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
CHAPTERS = dict(re.findall(r"^### vsr ([\w-]+)\n(.*?)(?=^##)", DOCUMENT, re.DOTALL | re.MULTILINE))
INTERRUPTED = 130
EVERYWHERE = re.search(r"^## Everywhere\n(.*?)^## ", DOCUMENT, re.DOTALL | re.MULTILINE)[1]
APPLICATION = typer.main.get_command(build())


def test_every_command_has_its_chapter():
    assert list(CHAPTERS) == list(APPLICATION.commands)


@pytest.mark.parametrize("command", sorted(APPLICATION.commands))
def test_the_options_of_a_command_are_documented(command):
    names = [name for parameter in APPLICATION.commands[command].params for name in parameter.opts if name[0] == "-"]
    assert names
    assert [name for name in names if not re.search(rf"`{name}\b", CHAPTERS[command] + EVERYWHERE)] == []


def test_no_option_is_documented_that_does_not_exist():
    commands = [APPLICATION, *APPLICATION.commands.values()]
    known = {name for command in commands for parameter in command.params for name in parameter.opts} | {"--help", "-h"}
    assert set(re.findall(r"(?<=`)--?[a-z][a-z-]*", DOCUMENT)) - known == set()


def test_the_exit_codes_are_those_of_the_program():
    assert re.findall(r"^\| (\d+) \|", DOCUMENT, re.MULTILINE) == [
        str(code) for code in (0, FAILED, USAGE, BUG, INTERRUPTED)
    ]


def _documented_keys(command):
    cell = re.search(rf"^\| `{command}` \| (.*) \|$", DOCUMENT, re.MULTILINE)[1]
    return set(re.findall(r"`(\w+)`", cell))


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """A folder with a configuration of one tiny model of each kind."""
    heads = {"labels": "sequence", "pairs": "nli", "names": "token"}
    folders = {name: write_encoder(tmp_path / name, "bert", head=head) for name, head in heads.items()}
    folders["tiny"] = write_bert(tmp_path / "tiny")
    catalog = {name: {"source": str(folder)} for name, folder in folders.items()}
    (tmp_path / "vsr.yaml").write_text(json.dumps({"catalog": catalog}))
    monkeypatch.chdir(tmp_path)


RUNS = {
    "plugins": [],
    "matrix": [],
    "models": [],
    "status": [],
    "check": [],
    "schema": [],
    "load": ["torch:tiny"],
    "embed": ["a river"],
    "similar": ["a river", "a bank"],
    "rerank": ["a river", "a bank"],
    "classify": ["a river", "--model", "labels"],
    "classify-all": ["a river", "--task", "labels", "--task", "names"],
    "nli": ["a river", "a bank"],
    "tag": ["a river"],
}
"""Every command that needs no packaged model and probes no framework, with arguments."""


@pytest.mark.parametrize("command", RUNS)
def test_the_json_of_a_command_has_the_documented_keys(command, configured, capsys):
    pytest.importorskip("vsr_candle_torch.adapter")
    assert main([command, *RUNS[command], "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert (body.pop("schema"), body.pop("command")) == (1, command)
    optional = {"out"} if command == "embed" else set()
    assert set(body) == _documented_keys(command) - optional


def test_the_version_has_the_documented_keys(capsys):
    assert main(["--json", "--version"]) == 0
    assert set(json.loads(capsys.readouterr().out)) - {"schema", "command"} == _documented_keys("--version")


def test_every_command_is_in_the_table_of_json():
    assert set(re.findall(r"^\| `(\w[\w-]*)` \|", DOCUMENT, re.MULTILINE)) == set(APPLICATION.commands)


def test_an_error_has_the_documented_shape(configured, capsys):
    example = json.loads(re.search(r"^```json\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)[1])
    assert main(["embed", "a river", "--model", "nosuch", "--json"]) == FAILED
    printed = capsys.readouterr()
    found = json.loads(printed.err)
    found["error"]["message"] = "..."
    assert (printed.out, found) == ("", example)
