"""docs/contract.md against the code: every signature as it is, every name mentioned, every sample run."""

import dataclasses
import importlib
import importlib.util
import inspect
import re
import sys
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
import vsr_core.contract as contract
from vsr_core import Runtime, errors, taxonomy
from vsr_core.contract import (
    BackendId,
    Candidate,
    Orderer,
    PolicyContext,
    Price,
    RouteRequest,
    RouteView,
)
from vsr_core.plugins import HookSpecs, PluginHost
from vsr_core.taxonomy import Capability, Kind
from vsr_core.testing import ToyPlugin, write_bert

DOCUMENT = (Path(__file__).parents[1] / "docs" / "contract.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [(language, text.rstrip("\n")) for language, text in FENCE.findall(DOCUMENT)]
SAMPLES = {match[1]: text for _, text in BLOCKS if (match := re.match(r"# (\S+\.(?:py|toml))\n", text)) is not None}

STAND_INS = {"FloatArray"}
"""Classes at run time only, standing for a type that the contract does not import."""


def _signatures():
    path = Path(__file__).with_name("contract_signatures.py")
    spec = importlib.util.spec_from_file_location("contract_signatures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


signatures = _signatures()
DESCRIBED = sorted(set(signatures.described_names()) - STAND_INS)


def _subject(block):
    """The contract name a block shows, or None for a sample."""
    for line in block.splitlines():
        if line.startswith("@"):
            continue
        match = re.match(r"(?:class|def|async def) (\w+)", line)
        return match[1] if match is not None and match[1] in contract.__all__ else None
    return None


SHOWN = [(name, text) for language, text in BLOCKS if language == "python" and (name := _subject(text)) is not None]


@pytest.mark.parametrize(("name", "block"), SHOWN, ids=[name for name, _ in SHOWN])
def test_a_signature_in_the_document_is_that_of_the_code(name, block):
    assert block == signatures.signature_block(name)


def test_every_class_and_function_of_the_contract_is_shown_once():
    assert sorted(name for name, _ in SHOWN) == DESCRIBED


def test_every_public_name_of_the_contract_is_mentioned():
    assert [name for name in contract.__all__ if not re.search(rf"\b{name}\b", DOCUMENT)] == []


def test_the_classes_said_to_take_positional_arguments_are_those_that_do():
    sentence = re.search(r"positional\s+arguments, are ([^.]*)\.", DOCUMENT)[1]
    positional = {
        name
        for name in DESCRIBED
        if signatures.is_value(name) and not all(field.kw_only for field in dataclasses.fields(getattr(contract, name)))
    }
    assert set(re.findall(r"`(\w+)`", sentence)) == positional


def test_the_contract_version_is_the_one_of_the_code():
    major, minor = contract.CONTRACT_VERSION
    assert f"contract **{major}.{minor}**" in DOCUMENT
    assert f"`({major}, {minor})`" in DOCUMENT


def test_every_hook_is_in_the_table_of_hooks():
    hooks = [name for name, _ in inspect.getmembers(HookSpecs, inspect.isfunction) if name.startswith("vsr_")]
    assert [hook for hook in hooks if f"| `{hook}(" not in DOCUMENT] == []


@pytest.mark.parametrize("axis", sorted(taxonomy.AXES.values(), key=lambda axis: axis.__name__))
def test_the_table_of_axes_has_every_member(axis):
    row = next(line for line in DOCUMENT.splitlines() if line.startswith(f"| `{axis.__name__}` |"))
    assert tuple(re.findall(r"`(\w+)`", row)[1:]) == axis.values()


def test_the_table_of_errors_has_every_error_with_its_code_and_status():
    rows = re.findall(r"^\| `(\w+Error)` \| `(\w+)` \| (\d+) \|", DOCUMENT, re.MULTILINE)
    found = {name: (code, int(status)) for name, code, status in rows}
    assert found == {error.__name__: (code, error.http_status) for code, error in _core_errors().items()}


def _core_errors():
    return {code: error for code, error in errors.error_codes().items() if error.__module__ == errors.__name__}


def test_the_retryable_classes_are_those_of_the_taxonomy():
    sentence = re.search(r"Retryable by themselves are ([^;]*);", DOCUMENT)[1]
    assert re.findall(r"`(\w+)`", sentence) == [item.value for item in taxonomy.ErrorClass if item.retryable]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The sample distribution, on ``sys.path`` as pip would have left it, and the only plugin that is switched on."""
    project = tomllib.loads(SAMPLES["pyproject.toml"])["project"]
    site = tmp_path / "site"
    (site / "vsr_letters").mkdir(parents=True)
    (site / "vsr_letters" / "__init__.py").touch()
    for name in ("vsr_letters/plugin.py", "vsr_letters/adapter.py"):
        (site / name).write_text(SAMPLES[name], encoding="utf-8")
    metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    fields = {"Metadata-Version": "2.4", "Name": project["name"], "Version": project["version"]}
    (metadata / "METADATA").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    groups = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text(groups)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("VSR_PLUGINS", project["name"])
    importlib.invalidate_caches()
    yield project
    for name in [name for name in sys.modules if name.partition(".")[0] == "vsr_letters"]:
        del sys.modules[name]


def test_the_plugin_is_found_by_its_entry_point_and_embeds(installed, tmp_path):
    host = PluginHost.discover()
    (record,) = [plugin for plugin in host.report().plugins if plugin.status != "disabled"]
    assert (record.name, record.distribution, record.status) == ("letters", "vsr-letters", "active")
    catalog = {"tiny": {"source": str(write_bert(tmp_path / "tiny"))}}
    with Runtime({"catalog": catalog}, host=host) as runtime:
        answer = runtime.embed(["abba", ""], model="tiny")
        info = runtime.load("letters:tiny")
    assert answer.vectors.shape == (2, 26)
    assert answer.vectors[0, :3].tolist() == [2.0, 2.0, 0.0]
    assert not answer.vectors[1].any()
    assert answer.envelope.backend_id == BackendId("letters", "tiny")
    assert info.device.actual == "cpu"


def test_the_plugin_refuses_what_it_declares_refused(installed, tmp_path):
    catalog = {"tiny": {"source": str(write_bert(tmp_path / "tiny"))}}
    with Runtime({"catalog": catalog}) as runtime, pytest.raises(errors.CapabilityUnmetError, match="26 letters"):
        runtime.embed("abba", model="letters:tiny", dimensions=13)


@pytest.mark.parametrize("key", ["device", "precision"])
def test_the_plugin_keeps_policies(installed, tmp_path, key):
    config = {"catalog": {"tiny": {"source": str(write_bert(tmp_path / "tiny"))}}}
    with Runtime(config | {"backends": {"letters": {key: "prefer:other"}}}) as runtime:
        choice = getattr(runtime.load("letters:tiny"), {"device": "device", "precision": "dtype"}[key])
        assert choice.requested == "prefer:other"
        assert choice.actual != "other"
        assert choice.reason
    with (
        Runtime(config | {"backends": {"letters": {key: "require:other"}}}) as runtime,
        pytest.raises(errors.LoadError, match="require:other"),
    ):
        runtime.load("letters:tiny")


def test_the_application_runs(installed, tmp_path, monkeypatch, capsys):
    write_bert(tmp_path / "models" / "tiny")
    monkeypatch.chdir(tmp_path)
    _run("application.py")
    assert capsys.readouterr().out == "(2, 26) letters:tiny\n"


def test_the_authors_test_passes(installed, tmp_path, monkeypatch):
    monkeypatch.delenv("VSR_PLUGINS")
    _run("test_letters.py")["test_the_backend_embeds_the_texts_of_a_catalog_model"](tmp_path)


@pytest.mark.parametrize("name", ["capability_rules.py", "json_form.py"])
def test_a_sample_holds_what_it_asserts(name):
    assert "assert " in SAMPLES[name]
    _run(name)


def test_a_checkpoint_of_the_sample_family_is_recognised(tmp_path):
    host = PluginHost()
    host.register(_module("families.py"), name="nomic_bert")
    host.register(ToyPlugin(), name="toy")
    files = {"model_type": "nomic_bert", "architectures": ["NomicBertModel"]}
    source = str(write_bert(tmp_path / "nomic_bert", config=files))
    with Runtime({"catalog": {"small": {"source": source}}}, host=host) as runtime:
        (info,) = runtime.models()
    assert info.family == "nomic_bert"


def test_the_sample_policy_orders_by_known_price():
    policy = _run("cheapest.py")["Cheapest"](PolicyContext(name="cheapest"))
    assert isinstance(policy, Orderer)
    candidates = tuple(
        Candidate(backend_id=BackendId("b", name), position=place, price=price)
        for place, (name, price) in enumerate(
            {"unknown": None, "dear": Price(input=Decimal(3)), "free": Price(input=Decimal(0))}.items()
        )
    )
    request = RouteRequest(request_id="1", kind=Kind.EMBEDDING, capability=Capability.EMBEDDING, logical_name="default")
    view = RouteView(request=request, candidates=candidates, now=0.0)
    ordered = sorted(candidates, key=lambda candidate: policy.key(view, candidate))
    assert [candidate.backend_id.model for candidate in ordered] == ["free", "dear", "unknown"]


def test_every_sample_is_used_by_a_test():
    used = {
        "pyproject.toml",
        "vsr_letters/plugin.py",
        "vsr_letters/adapter.py",
        "application.py",
        "test_letters.py",
        "capability_rules.py",
        "json_form.py",
        "families.py",
        "cheapest.py",
    }
    assert set(SAMPLES) == used


def _run(name):
    scope = {"__name__": name.removesuffix(".py")}
    exec(compile(SAMPLES[name], name, "exec"), scope)
    return scope


def _module(name):
    module = type(sys)(name.removesuffix(".py"))
    exec(compile(SAMPLES[name], name, "exec"), module.__dict__)
    return module
