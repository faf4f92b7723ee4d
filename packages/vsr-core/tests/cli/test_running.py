"""How a run ends: exit codes, messages, and nothing that was not meant to be seen."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import typer
from vsr_core.cli import main

COMMANDS = ["plugins", "matrix", "models", "status", "doctor", "check", "schema"]


def explode(error):
    def instead(*arguments, **options):
        raise error

    return instead


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_without_arguments_prints_one_json_object(vsr, mini, command):
    ran = vsr(command, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.body["schema"] == 1
    assert ran.body["command"] == command


@pytest.mark.parametrize(
    "arguments",
    [["embed", "a"], ["similar", "a", "b"], ["rerank", "a", "b"], ["load", "mini"]],
    ids=lambda arguments: arguments[0],
)
def test_every_command_that_asks_a_model_prints_one_json_object(vsr, mini, arguments):
    ran = vsr(*arguments, "--json")
    assert ran.code == 0
    assert (ran.body["schema"], ran.body["command"]) == (1, arguments[0])


@pytest.mark.parametrize("arguments", [["classify", "a"], ["nli", "a", "b"], ["tag", "a"]], ids=lambda given: given[0])
def test_every_command_that_asks_a_classifier_prints_one_json_object(vsr, kinds, arguments):
    ran = vsr(*arguments, "--json")
    assert ran.code == 0
    assert (ran.body["schema"], ran.body["command"]) == (1, arguments[0])


def test_options_before_the_command_count_as_well(vsr, mini, write):
    write("catalog: {}\n", name="empty.yaml")
    assert vsr("--json", "--config", "empty.yaml", "models").body["models"] == []


def test_version_is_printed_in_both_forms(vsr):
    assert vsr("--version").out.startswith("vsr ")
    assert vsr("--version", "--json").body["version"]


def test_help_lists_every_command(vsr):
    ran = vsr("--help")
    assert ran.code == 0
    for command in [*COMMANDS, "embed", "similar", "rerank", "classify", "nli", "tag", "load", "demo"]:
        assert command in ran.out


def test_no_command_is_wrong_usage(vsr):
    assert vsr().code == 2
    assert vsr("--json").error["code"] == "usage"


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["models", "--nonsense"], ["load"], ["embed", "--dimensions", "x"]]
)
def test_wrong_usage_exits_2_and_points_to_the_help(vsr, arguments):
    ran = vsr(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert "--help" in ran.err


def test_wrong_usage_is_json_where_json_was_asked_for(vsr):
    ran = vsr("models", "--nonsense", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.error["code"] == "usage"
    assert "--nonsense" in ran.error["message"]


def test_json_among_the_texts_is_a_text(vsr):
    assert vsr("load", "nope", "--", "--json").err.startswith("Usage")


def test_an_unknown_model_is_a_message_and_exits_1(vsr, mini):
    ran = vsr("embed", "text", "--model", "nope")
    assert (ran.code, ran.out) == (1, "")
    assert "'nope'" in ran.err
    assert "vsr models" in ran.err


def test_errors_are_json_where_json_was_asked_for(vsr, mini):
    ran = vsr("embed", "text", "--model", "nope", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.error["code"] == "model_not_found"
    assert ran.error["retryable"] is False


def test_a_missing_configuration_is_a_message(vsr):
    ran = vsr("models", "--config", "gone.yaml")
    assert (ran.code, ran.out) == (1, "")
    assert "'gone.yaml'" in ran.err


@pytest.mark.parametrize("command", ["models", "status", "matrix", "plugins"])
def test_a_broken_configuration_is_a_message_with_every_problem(vsr, write, command):
    write("catalogue: {}\nroles: {embedding: {default: 7}}\n")
    ran = vsr(command)
    assert (ran.code, ran.out) == (1, "")
    assert "catalogue" in ran.err
    assert "roles.embedding.default" in ran.err


@pytest.mark.parametrize("value", ["0", "-3", "5"])
def test_a_dimension_the_model_does_not_have_is_a_message(vsr, mini, value):
    ran = vsr("embed", "text", "--dimensions", value)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("vsr: ")


def test_a_secret_in_the_configuration_is_in_no_output(vsr, mini, write, monkeypatch):
    canary = "canary-4711-canary"
    monkeypatch.setenv("WORK_KEY", canary)
    write(
        "catalog:\n  mini: {source: mini}\nbackends:\n"
        f"  toy: {{api_key: '{canary}'}}\n  other: {{adapter: toy, token: '${{WORK_KEY}}'}}\n"
    )
    for arguments in (*COMMANDS, "embed text", "load mini", "demo --config vsr.yaml", "matrix --probe --why"):
        for form in ([], ["--json"]):
            ran = vsr(*arguments.split(), *form)
            assert canary not in ran.out + ran.err


def test_a_bug_is_named_one_with_its_place_but_not_with_its_text(vsr, mini, monkeypatch):
    monkeypatch.setattr("vsr_core.runtime.Runtime.models", explode(KeyError("secret")))
    ran = vsr("models")
    assert (ran.code, ran.out) == (70, "")
    assert "unexpected KeyError" in ran.err
    assert "VSR_DEBUG=1" in ran.err
    assert "secret" not in ran.err


def test_a_bug_is_json_where_json_was_asked_for(vsr, mini, monkeypatch):
    monkeypatch.setattr("vsr_core.runtime.Runtime.models", explode(KeyError("secret")))
    ran = vsr("models", "--json")
    assert ran.code == 70
    assert ran.error["code"] == "internal"


def test_the_traceback_of_a_bug_is_shown_on_demand(mini, monkeypatch, capsys):
    monkeypatch.setenv("VSR_DEBUG", "1")
    monkeypatch.setattr("vsr_core.runtime.Runtime.models", explode(KeyError("secret")))
    assert main(["models"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interruption_is_quiet(vsr, mini, monkeypatch):
    monkeypatch.setattr("vsr_core.runtime.Runtime.models", explode(KeyboardInterrupt()))
    ran = vsr("models")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_a_runtime_is_closed_whether_or_not_the_command_succeeds_but_not_waited_for_after_an_interruption(
    vsr, mini, monkeypatch
):
    closed = []
    monkeypatch.setattr("vsr_core.runtime.Runtime.close", lambda runtime: closed.append(1))
    vsr("models")
    vsr("load", "nope")
    assert len(closed) == 2
    monkeypatch.setattr("vsr_core.runtime.Runtime.models", explode(KeyboardInterrupt()))
    vsr("models")
    assert len(closed) == 2


def test_a_full_disk_is_no_bug(vsr, mini, monkeypatch):
    monkeypatch.setattr(typer, "echo", explode(OSError(errno.ENOSPC, "No space left on device")))
    ran = vsr("schema")
    assert ran.code == 1
    assert "No space left" in ran.err


def test_a_reader_that_leaves_is_no_bug(mini):
    command = [sys.executable, "-m", "vsr_core.cli", "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(15) == 1


def test_ctrl_c_while_a_plugin_hangs_ends_the_process_quietly(plant, monkeypatch, tmp_path):
    marker = tmp_path / "begun"
    monkeypatch.setenv("VSR_PLUGINS", "slow")
    plant("slow", f"import pathlib, time\npathlib.Path({str(marker)!r}).touch()\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "vsr_core.cli", "plugins"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        until = time.monotonic() + 15
        while not marker.exists() and time.monotonic() < until:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        assert running.wait(15) == 130
        assert running.stderr.read() == b""


def test_the_module_is_a_program(process, toy):
    ran = process("plugins", "--json")
    assert ran.code == 0
    assert ran.body["command"] == "plugins"


def test_listing_plugins_imports_no_framework_and_no_runtime(toy, monkeypatch, tmp_path):
    monkeypatch.delenv("VSR_PLUGINS")
    heavy = ["numpy", "torch", "transformers", "onnxruntime", "openvino", "httpx", "yaml", "rich.console"]
    heavy += ["huggingface_hub", "safetensors", "tokenizers", "vsr_core.runtime", "vsr_core.config"]
    script = (
        "import json, sys\nfrom vsr_core.cli import main\n"
        f"code = main(['plugins', '--json'])\nprint(json.dumps([name for name in {heavy!r} if name in sys.modules]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path, env=os.environ
    )
    report, loaded = map(json.loads, done.stdout.splitlines())
    assert "toy" in [plugin["name"] for plugin in report["plugins"]]
    assert loaded == []
