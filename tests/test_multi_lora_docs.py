"""docs/multi-lora.md against the program: its configuration loads, its commands and calls are there."""

import re
from pathlib import Path

import pytest
import typer
from vsr_core import AsyncRuntime, Runtime
from vsr_core.cli.app import build
from vsr_core.config import load_config
from vsr_core.contract import MultiTaskResponse, TaskOutcome

DOCUMENT = (Path(__file__).parents[1] / "docs" / "multi-lora.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(build()).commands


def test_the_configuration_loads_and_says_what_the_text_says(tmp_path):
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
    (tmp_path / "vsr.yaml").write_text(example)
    config = load_config(tmp_path / "vsr.yaml")
    assert {name for name, entry in config.catalog.items() if entry.base == "base"} == {"intent", "pii"}


@pytest.mark.parametrize("line", re.findall(r"^\$ vsr (.*)$", DOCUMENT, re.MULTILINE))
def test_every_command_exists_with_its_options(line):
    command, *rest = line.split()
    known = {option for parameter in COMMANDS[command].params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= known


def test_the_calls_and_fields_it_names_exist():
    for facade in (Runtime, AsyncRuntime):
        for name in set(re.findall(r"\bvsr\.(\w+)\(", DOCUMENT)):
            assert hasattr(facade, name)
    for field in ("outcomes", "shared_layers"):
        assert field in MultiTaskResponse.__dataclass_fields__
    for field in ("task", "response", "error"):
        assert field in TaskOutcome.__dataclass_fields__
