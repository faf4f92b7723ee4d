"""Checking a configuration against what is installed: every impossible combination, with its reason and its place."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from importlib_metadata import EntryPoint
from vsr_core.config import CheckReport, check, load_config
from vsr_core.contract import (
    BackendAdapter,
    BackendContext,
    BackendDescriptor,
    CapabilitySet,
    CatalogEntry,
    Limits,
    LoadRequest,
    ModelHandle,
    PolicyDescriptor,
    Refused,
    RouterDescriptor,
    RuntimeInfo,
    Selector,
    Supported,
    hookimpl,
)
from vsr_core.plugins import BackendInstances, CapabilityMatrix, PluginHost
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_core.wire import from_json, to_json

CANARY = "sk-canary-8d1f"
MODULE = "tiny_plugin"
"""Under this name descriptors find what is defined here: the name of a test module is none that they may use."""
NO_SPANS = Refused("no_spans", "it has no span decoder")
NO_EXIT = Refused("no_exit", "the graph has one output")


class Local(BackendAdapter):
    """Serves BERT, for embedding and classification, up to 256 tokens; whatever it loads is a mistake."""

    def __init__(self, context: BackendContext) -> None:
        self.namespace = context.name

    def capabilities(self) -> CapabilitySet:
        bert = {"family": "bert", "artifact": Artifact.FULL}
        return CapabilitySet.of(
            [
                (Selector(capability=Capability.EMBEDDING, **bert), Supported(Limits(max_tokens=256))),
                (Selector(capability=Capability.SEQUENCE_CLASSIFICATION, **bert), Supported()),
                (
                    Selector(
                        capability=Capability.SEQUENCE_CLASSIFICATION, family="bert", artifact=Artifact.LORA_ADAPTER
                    ),
                    Supported(),
                ),
                (Selector(capability=Capability.SPANS), NO_SPANS),
                (Selector(capability=Capability.EMBEDDING, feature=Feature.LAYER_EXIT), NO_EXIT),
                (
                    Selector(capability=Capability.EMBEDDING, feature=Feature.DIMENSIONS),
                    Supported(Limits(dimensions=(2, 4))),
                ),
            ]
        )

    def probe(self) -> RuntimeInfo:
        raise AssertionError("a check does not probe")

    def load(self, request: LoadRequest) -> ModelHandle:
        raise AssertionError("a check does not load")


class Provider(Local):
    """An open namespace that generates."""

    def capabilities(self) -> CapabilitySet:
        return CapabilitySet.of([(Selector(capability=Capability.GENERATION, artifact=Artifact.REMOTE), Supported())])


@dataclass
class ProviderOptions:
    api_key: str
    retries: int = 2


def broken(context: BackendContext) -> BackendAdapter:
    raise RuntimeError("the driver is missing")


class Tiny:
    """A plugin with two backends that work, one that does not, a policy, a router, and a model."""

    @hookimpl
    def vsr_backends(self) -> list[BackendDescriptor]:
        return [
            BackendDescriptor(name="local", contract="1.0", factory=f"{MODULE}:Local"),
            BackendDescriptor(name="shaky", contract="1.0", factory=f"{MODULE}:broken"),
            BackendDescriptor(
                name="provider",
                contract="1.0",
                factory=f"{MODULE}:Provider",
                options=f"{MODULE}:ProviderOptions",
                open_namespace=True,
                configured_only=True,
            ),
        ]

    @hookimpl
    def vsr_routing_policies(self) -> list[PolicyDescriptor]:
        return [PolicyDescriptor(name="latency", contract="1.0", factory=f"{MODULE}:broken")]

    @hookimpl
    def vsr_routers(self) -> list[RouterDescriptor]:
        return [RouterDescriptor(name="learned", contract="1.0", factory=f"{MODULE}:broken")]

    @hookimpl
    def vsr_catalog(self) -> list[CatalogEntry]:
        return [CatalogEntry(name="bundled", source="/no/such/folder", backends=("local",))]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, sys.modules[__name__])


def host_with_plugins(*entry_points: EntryPoint) -> PluginHost:
    host = PluginHost.discover(environ={}, entry_points=entry_points)
    host.register(Tiny(), name="tiny")
    return host


@pytest.fixture
def examine(write: Callable[..., Path]) -> Callable[..., CheckReport]:
    """Writes a configuration, loads it and checks it against the tiny plugin."""

    def examine(text: str, *entry_points: EntryPoint) -> CheckReport:
        config = load_config(write(text), environ={"KEY": CANARY})
        host = host_with_plugins(*entry_points)
        return check(config, host, BackendInstances(host, config.instances))

    return examine


def lines(report: CheckReport) -> list[str]:
    return [str(problem) for problem in report.problems]


def test_an_empty_configuration_is_possible(examine):
    assert examine("").ok


def test_a_possible_configuration_has_no_problems(examine, model):
    report = examine(
        f"""
        catalog:
          small: {{source: {model("bert")}, backends: [local], pooling: mean, dimensions: [2], max_tokens: 128}}
          anywhere: {{source: bert, pooling: mean, max_tokens: 128}}
        backends:
          work: {{adapter: provider, api_key: "${{KEY}}"}}
        roles:
          embedding: {{default: small, other: "local:anywhere"}}
          reranking: {{default: "local:small"}}
          generation: {{default: "work:anything"}}
        routing: {{policies: [latency], router: learned}}
        prices: {{"work:anything": {{input: 1}}}}
        """
    )
    assert lines(report) == []
    assert report.ok
    assert report.notes == (
        "vsr.yaml:10: roles.generation.default: 'work:anything' is taken on trust: no catalog entry describes it",
    )


def test_a_backend_of_this_project_that_is_not_installed_comes_with_its_extra(examine):
    assert lines(examine('roles:\n  embedding:\n    default: ["torch:a", "onnx:a", "ollama:llama3.2:3b"]\n')) == [
        f"vsr.yaml:3: roles.embedding.default[{index}]: no installed plugin brings a backend called {name!r}: "
        f"pip install 'vsr-core[{extra}]'"
        for index, (name, extra) in enumerate([("torch", "torch"), ("onnx", "onnx"), ("ollama", "remote")])
    ]


def test_any_other_backend_that_is_not_installed_comes_with_the_nearest_name(examine):
    assert lines(examine("backends:\n  mine: {adapter: provder}\n  locla:\n")) == [
        "vsr.yaml:2: backends.mine: no installed plugin brings a backend called 'provder'; did you mean 'provider'?",
        "vsr.yaml:3: backends.locla: no installed plugin brings a backend called 'locla'; did you mean 'local'?",
    ]


def test_a_backend_whose_plugin_is_broken_comes_with_the_reason(examine):
    entry_point = EntryPoint(name="fragile", value="no_such_module_anywhere", group="vsr_core.plugins")
    report = examine('roles: {embedding: {default: "fragile:a"}}', entry_point)
    (problem,) = report.problems
    assert problem.where == "roles.embedding.default"
    assert "no_such_module_anywhere" in problem.message
    assert any("plugin 'fragile' is broken" in note for note in report.notes)


def test_a_backend_that_cannot_be_made_comes_with_the_reason(examine):
    report = examine('backends:\n  shaky:\nroles:\n  embedding: {default: "shaky:a"}\n')
    (problem,) = lines(report)
    assert problem.startswith("vsr.yaml:2: backends.shaky: ")
    assert "the driver is missing" in problem


def test_a_backend_that_needs_an_instance_says_so(examine):
    (problem,) = lines(examine('roles: {generation: {default: "provider:a"}}'))
    assert problem.startswith("vsr.yaml:1: roles.generation.default: ")
    assert "`backends`" in problem


def test_options_are_checked_by_their_backend_at_their_own_line(examine):
    report = examine(
        """
        backends:
          one:
            adapter: provider
            api_key: a
            retires: 3
          two:
            adapter: provider
            api_key: "${KEY}"
            retries: "${KEY}"
          three: {adapter: provider}
          local:
            anything: 1
        """
    )
    places = [(problem.line, problem.where) for problem in report.problems]
    assert places == [
        (6, "backends.one.retires"),
        (10, "backends.two.retries"),
        (11, "backends.three"),
        (13, "backends.local.anything"),
    ]
    assert "did you mean 'retries'?" in report.problems[0].message
    assert CANARY not in "\n".join(lines(report))


def test_a_source_that_is_not_there_is_a_problem_of_the_entry(examine):
    report = examine("catalog:\n  a:\n    source: missing\n    backends: [local]\n")
    (problem,) = lines(report)
    assert problem.startswith("vsr.yaml:3: catalog.a.source: ")
    assert "missing" in problem


def test_a_malformed_source_is_refused(examine):
    (problem,) = lines(examine("catalog:\n  a:\n    source: ftp://host/model\n"))
    assert problem.startswith("vsr.yaml:3: catalog.a.source: ")


def test_relative_sources_start_at_the_configurations_folder(examine, model, tmp_path, monkeypatch):
    text = f"catalog: {{a: {{source: {model('bert')}, pooling: mean, backends: [local], max_tokens: 9}}}}"
    assert examine(text).ok
    (tmp_path / "elsewhere").mkdir()
    config = load_config(tmp_path / "vsr.yaml")
    monkeypatch.chdir(tmp_path / "elsewhere")
    host = host_with_plugins()
    assert check(config, host, BackendInstances(host)).ok


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the hub library looks for what it has."""
    pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_model_of_the_hub_is_not_fetched(examine, hub_cache):
    report = examine("catalog: {a: {source: hf://org/name, capability: embedding, backends: [local]}}")
    assert report.ok
    assert report.notes == ("vsr.yaml:1: catalog.a.source: not looked at: the files of 'a' are not in the local cache",)


@pytest.mark.parametrize(("weights", "problems"), [(True, 1), (False, 0)])
def test_a_model_of_the_hub_is_inspected_where_the_cache_has_its_weights(
    examine, hub_cache, model, tmp_path, weights, problems
):
    snapshots = hub_cache / "models--org--name" / "snapshots"
    snapshots.mkdir(parents=True)
    (tmp_path / model("bert")).rename(snapshots / "c0ffee")
    (hub_cache / "models--org--name" / "refs").mkdir()
    (hub_cache / "models--org--name" / "refs" / "main").write_text("c0ffee", encoding="utf-8")
    if not weights:
        (snapshots / "c0ffee" / "model.safetensors").unlink()
    report = examine(
        "catalog: {a: {source: hf://org/name, family: bert, pooling: mean, layers: [7], backends: [local]}}"
    )
    assert [problem.where for problem in report.problems] == ["catalog.a.layers"] * problems


def test_statements_that_contradict_the_files_are_shown_at_their_keys(examine, model):
    report = examine(
        f"""\
        catalog:
          a:
            source: {model("bert")}
            capability: sequence_classification
            dimensions: [8]
          b:
            source: bert
            layers: [1, 3]
            max_tokens: 4096
        """
    )
    places = [(problem.line, problem.where) for problem in report.problems]
    assert (4, "catalog.a.capability") in places or (5, "catalog.a.dimensions") in places
    assert (8, "catalog.b.layers") in places
    assert (9, "catalog.b.max_tokens") in places
    assert any(problem.where == "catalog.b.source" and "pooling" in problem.message for problem in report.problems)


def test_what_no_load_would_accept_is_shown_at_its_key(examine, model, tmp_path):
    folder = model("bert", architectures=["BertForSequenceClassification"], id2label={"0": "LABEL_0", "1": "LABEL_1"})
    (tmp_path / "three.yaml").write_text("[no, yes, off]", encoding="utf-8")
    (tmp_path / "bert" / "tokenizer.json").unlink()
    report = examine(
        f"""\
        catalog:
          a:
            source: {folder}
            backends: [local]
            labels: three.yaml
            threshold: 2
          b:
            source: {folder}
            backends: [local]
            labels: [a, classification_error]
        """
    )
    assert [(problem.line, problem.where) for problem in report.problems] == [
        (3, "catalog.a.source"),
        (5, "catalog.a.labels"),
        (6, "catalog.a.threshold"),
        (8, "catalog.b.source"),
        (10, "catalog.b.labels"),
    ]
    assert "tokenizer.json is missing" in report.problems[0].message
    assert report.problems[1].message == "'three.yaml' names 3, the model has 2"


def test_a_missing_label_file_is_a_problem(examine, model):
    folder = model("bert", architectures=["BertForSequenceClassification"], id2label={"0": "a", "1": "b"})
    (problem,) = lines(examine(f"catalog: {{a: {{source: {folder}, labels: none.json, backends: [local]}}}}"))
    assert "no label file 'none.json'" in problem


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("layers: [1]", "layer_exit: the graph has one output"),
        ("dimensions: [3]", "dimensions has 3, and the backend allows 2, 4"),
        ("max_tokens: 512", "max_tokens is 512, and the backend's limit is 256"),
    ],
)
def test_what_an_entry_asks_beyond_the_backend_is_refused_with_the_backends_reason(examine, model, statement, reason):
    report = examine(
        f"catalog:\n  a: {{source: {model('bert')}, pooling: mean, backends: [local], {statement}}}\n"
        "roles: {embedding: {default: a}}\n"
    )
    assert lines(report) == [
        f"vsr.yaml:2: catalog.a.backends[0]: 'local' cannot serve 'a' (bert, full) for embedding: {reason}"
    ]


def test_a_refusal_is_the_one_the_matrix_shows(examine):
    report = examine(
        "catalog: {a: {source: hf://org/none-such, capability: spans, family: bert, artifact: full, backends: [local]}}"
    )
    (problem,) = report.problems
    host = host_with_plugins()
    cell = CapabilityMatrix.of(BackendInstances(host), probe=False).cell("local", Capability.SPANS)
    assert cell is not None
    assert cell.verdict == NO_SPANS
    assert problem.code == NO_SPANS.code
    assert problem.message.endswith(f": {NO_SPANS.reason}")


def test_an_entry_without_backends_needs_one_that_serves_it(examine):
    report = examine("catalog:\n  a: {source: hf://org/none-such, capability: guard, family: bert, artifact: full}\n")
    assert lines(report) == [
        "vsr.yaml:2: catalog.a: no installed backend can serve 'a' (bert, full): local: the backend does not declare it"
    ]


def test_a_role_cannot_use_a_model_for_something_else(examine, model):
    assert lines(
        examine(
            f"catalog: {{a: {{source: {model('bert')}, pooling: mean, max_tokens: 9}}}}\n"
            'roles: {generation: {default: "local:a"}, embedding: {default: "local:a"}}\n'
        )
    ) == [
        "vsr.yaml:2: roles.generation.default: a role of kind generation cannot use 'a' (bert, full), which is for embedding"
    ]


def test_a_role_cannot_use_a_backend_the_entry_does_not_list(examine, model):
    (problem,) = lines(
        examine(
            f"catalog: {{a: {{source: {model('bert')}, pooling: mean, max_tokens: 9, backends: [local]}}}}\n"
            'backends: {second: {adapter: local}}\nroles: {embedding: {default: "second:a"}}\n'
        )
    )
    assert problem == (
        "vsr.yaml:3: roles.embedding.default: 'second' is none of the backends of the catalog entry 'a', "
        "which are local"
    )


def test_a_model_nobody_knows_is_refused_with_the_nearest_name(examine, model):
    (problem,) = lines(
        examine(
            f"catalog: {{minilm: {{source: {model('bert')}, pooling: mean, max_tokens: 9}}}}\n"
            'roles: {embedding: {default: "local:minlim"}}\n'
        )
    )
    assert problem == ("vsr.yaml:2: roles.embedding.default: the catalog has no entry 'minlim'; did you mean 'minilm'?")


def test_a_provider_is_taken_on_trust_only_for_what_it_declares(examine):
    (problem,) = lines(
        examine('backends: {work: {adapter: provider, api_key: k}}\nroles: {embedding: {default: "work:ada"}}\n')
    )
    assert problem == (
        "vsr.yaml:2: roles.embedding.default: 'work' does not serve embedding: the backend does not declare it"
    )


def test_a_model_that_a_plugin_brings_is_checked_where_it_is_used(examine):
    (problem,) = lines(examine('roles: {embedding: {default: "local:bundled"}}'))
    assert problem.startswith("vsr.yaml:1: roles.embedding.default: the catalog entry 'bundled' of plugin 'tiny': ")
    assert "/no/such/folder" in problem


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("smal", "the catalog has no entry 'smal'; did you mean 'small'?"),
        ("other", "'other' is an adapter itself; name the entry that it sits on"),
    ],
)
def test_an_adapter_needs_a_base_that_is_no_adapter(examine, model, base, message):
    report = examine(
        f"""\
        catalog:
          small: {{source: {model("bert")}, pooling: mean, max_tokens: 9, backends: [local]}}
          other: {{base: small, adapter: hf://org/none-such}}
          intent: {{base: {base}, adapter: hf://org/none-such}}
        """
    )
    assert f"vsr.yaml:4: catalog.intent.base: {message}" in lines(report)


def test_an_adapter_is_judged_by_the_family_of_its_base(examine, model):
    report = examine(
        f"""\
        catalog:
          small: {{source: {model("bert")}, pooling: mean, max_tokens: 9, backends: [local]}}
          intent:
            {{base: small, adapter: hf://org/none-such, capability: sequence_classification, backends: [local]}}
          tags: {{base: small, adapter: hf://org/none-such, capability: token_classification, backends: [local]}}
        """
    )
    assert lines(report) == [
        "vsr.yaml:5: catalog.tags.backends[0]: 'local' cannot serve 'tags' (bert, lora_adapter) for "
        "token_classification: the backend does not declare it"
    ]


def test_names_in_the_other_sections_are_checked(examine):
    assert lines(
        examine(
            """\
            roles: {generation: {default: {model: "work:a", policies: [lateny]}}}
            backends: {work: {adapter: provider, api_key: k}}
            routing:
              policies: [latency, {tenant: {}}]
              router: lerned
            signals: {jb: {role: jailbreak}}
            prices: {"wrok:a": {input: 1}}
            plugins: {precedence: {local: tinny}}
            """
        )
    ) == [
        "vsr.yaml:1: roles.generation.default.policies[0]: no installed plugin brings a policy called 'lateny'; "
        "did you mean 'latency'?",
        "vsr.yaml:4: routing.policies[1]: no installed plugin brings a policy called 'tenant'; "
        "this project's own come with pip install 'vsr-core[policies]'",
        "vsr.yaml:5: routing.router: no installed plugin brings a router called 'lerned'; did you mean 'learned'?",
        "vsr.yaml:6: signals.jb.role: no classification role is called 'jailbreak'",
        "vsr.yaml:7: prices.wrok:a: no backend is called 'wrok'; did you mean 'work'?",
        "vsr.yaml:8: plugins.precedence.local: no installed plugin or distribution is called 'tinny'; did you mean 'tiny'?",
    ]


def test_a_report_travels_as_json(examine):
    report = examine('roles: {embedding: {default: "torch:a"}}')
    assert from_json(CheckReport, json.loads(json.dumps(to_json(report)))) == report
