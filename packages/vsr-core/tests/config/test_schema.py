"""Every key: what it becomes, and what is refused."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import get_args

import pytest
from pydantic import TypeAdapter, ValidationError
from vsr_core.config import load_config
from vsr_core.config.fields import Strict
from vsr_core.contract import BackendId, BatchingHints, CatalogEntry, Preference, Price
from vsr_core.errors import ConfigError
from vsr_core.taxonomy import Artifact, Capability, Kind, Modality


def test_a_catalog_entry_becomes_the_contracts(load):
    config = load(
        """
        catalog:
          intent:
            source: hf://org/name@v1
            backends: [onnx, torch, onnx]
            capability: [sequence_classification, embedding]
            family: bert
            artifact: onnx
            modality: text
            dimensions: [128, 256]
            layers: 6
            max_tokens: 512
            pooling: mean
            normalize: false
            prompts: {query: "query: "}
            default_prompt: query
            labels: [spam, ham]
            threshold: 0.5
            calibration: {temperature: 2.5}
            positive_labels: spam
            metadata: {owner: search}
        """
    )
    assert config.catalog["intent"] == CatalogEntry(
        name="intent",
        source="hf://org/name@v1",
        backends=("onnx", "torch"),
        capabilities=(Capability.SEQUENCE_CLASSIFICATION, Capability.EMBEDDING),
        family="bert",
        artifact=Artifact.ONNX,
        modality=Modality.TEXT,
        dimensions=(128, 256),
        layers=(6,),
        max_tokens=512,
        pooling=("mean",),
        normalize=False,
        prompts={"query": "query: "},
        default_prompt="query",
        labels=("spam", "ham"),
        threshold=0.5,
        temperature=2.5,
        positive_labels=("spam",),
        metadata={"owner": "search"},
    )


def test_a_lora_adapter_names_its_base(load):
    entry = load("catalog: {minilm: {source: a}, intent: {base: minilm, adapter: b, labels: map.json}}").catalog[
        "intent"
    ]
    assert (entry.base, entry.adapter, entry.source, entry.labels) == ("minilm", "b", None, "map.json")


def test_a_remote_model_needs_no_source(load):
    entry = load("catalog: {gpt-4o: {artifact: remote, max_tokens: 128000}}").catalog["gpt-4o"]
    assert (entry.source, entry.artifact) == (None, Artifact.REMOTE)


@pytest.mark.parametrize(
    ("entry", "where", "message"),
    [
        ("{}", "", "where are the weights?"),
        ("", "", "where are the weights?"),
        ("{source: a, base: b, adapter: c}", "", "not both"),
        ("{base: b}", "", "'base' and 'adapter' go together"),
        ("{adapter: b}", "", "'base' and 'adapter' go together"),
        ("{source: ''}", ".source", "may not be empty"),
        ("{source: 3}", ".source", "expected text; put it in quotes"),
        ("{source: a, capability: embeding}", ".capability", "expected one of 'embedding', "),
        ("{source: a, artifact: gguff}", ".artifact", "expected one of 'full', "),
        ("{source: a, pooling: [cls, average]}", ".pooling[1]", "expected one of 'cls', 'mean', "),
        ("{source: a, dimensions: [128, 0]}", ".dimensions[1]", "greater than or equal to 1"),
        ("{source: a, layers: true}", ".layers", "expected a"),
        ("{source: a, max_tokens: many}", ".max_tokens", "expected a whole number"),
        ("{source: a, normalize: maybe}", ".normalize", "expected true or false"),
        ("{source: a, labels: 5}", ".labels", "expected a list of label names, or the path of a label file"),
        ("{source: a, labels: [a, a]}", "", "'labels' names a label twice"),
        ("{source: a, labels: [a, 5]}", ".labels[1]", "expected text"),
        ("{source: a, labels: [a], positive_labels: [b]}", "", "'positive_labels' has 'b', which 'labels' has not"),
        ("{source: a, threshold: high}", ".threshold", "expected a number"),
        ("{source: a, threshold: .nan}", ".threshold", "expected a finite number"),
        ("{source: a, calibration: {temperature: 0}}", ".calibration.temperature", "greater than 0"),
        ("{source: a, calibration: 2}", ".calibration", "expected a mapping"),
        ("{source: a, backends: [Torch]}", ".backends[0]", "'Torch' is no backend name"),
        ("{source: a, prompts: [b]}", ".prompts", "expected a mapping"),
        ("{source: a, temperature: 2}", ".temperature", "unknown key"),
    ],
)
def test_what_a_catalog_entry_may_not_say(refused, entry, where, message):
    (problem,) = refused(f"catalog:\n  m: {entry}\n")
    assert problem.startswith(f"vsr.yaml:2: catalog.m{where}: ")
    assert message in problem


def test_a_backend_instance_has_core_keys_and_options(load):
    config = load(
        """
        backends:
          torch:
          work:
            adapter: openai
            device: cpu
            precision: prefer:bfloat16
            threads: 2
            batching: {max_batch_tokens: 4096}
            base_url: https://example.test/v1
        """
    )
    plain, work = config.instances["torch"], config.instances["work"]
    assert (plain.name, plain.adapter, plain.device, dict(plain.options)) == ("torch", "torch", Preference(), {})
    assert (work.name, work.adapter, work.threads) == ("work", "openai", 2)
    assert work.device == Preference("require", "cpu")
    assert work.precision == Preference("prefer", "bfloat16")
    assert work.batching == BatchingHints(max_batch_tokens=4096)
    assert dict(work.options) == {"base_url": "https://example.test/v1"}


@pytest.mark.parametrize(
    ("written", "where", "message"),
    [
        ("torch: {precison: auto}", "torch.precison", "unknown key; did you mean 'precision'?"),
        ("torch: {threads: 0}", "torch.threads", "greater than or equal to 1"),
        ("torch: {threads: true}", "torch.threads", "expected a whole number"),
        ("torch: {device: 'prefer:'}", "torch.device", "'prefer:' is no policy"),
        ("torch: {device: 3}", "torch.device", "expected text"),
        ("torch: {batching: {max_tokens: 3}}", "torch.batching.max_tokens", "unknown key; did you mean"),
        ("torch: {adapter: 'a b'}", "torch.adapter", "is no backend name"),
        ("Torch: {}", "Torch", "'Torch' is no backend name"),
        ("torch: fast", "torch", "expected a mapping"),
    ],
)
def test_what_a_backend_instance_may_not_say(refused, written, where, message):
    (problem,) = refused(f"backends:\n  {written}\n")
    assert problem.startswith(f"vsr.yaml:2: backends.{where}: ")
    assert message in problem


def test_an_option_may_be_the_plural_of_a_core_key(load):
    assert dict(load("backends: {torch: {devices: [0, 1]}}").instances["torch"].options) == {"devices": [0, 1]}


def test_routing_signals_prices_and_the_rest(load):
    config = load(
        """
        roles: {classification: {jailbreak: {model: "torch:jb", policies: [latency]}}}
        routing:
          policies: [tenant, {cost: {max_usd: 0.02}}, {latency: }]
          limits: {max_attempts: 3, timeout: 30}
        signals: {jailbreak: {role: jailbreak, threshold: 0.7, positive: jailbreak, on_error: allow}}
        prices: {"openai:gpt-4o": {input: 2.5, output: "10.00", per_request: 0}}
        tenants: {acme: {allow: "openai:*", deny: ["openai:o1"]}, nobody: {allow: []}}
        ledger: {url: "sqlite:///ledger.db"}
        server: {host: 0.0.0.0, port: 0, api_keys: [secret-one]}
        plugins: {only: [torch], disabled: other, precedence: {torch: mine}, strict: true, timeout: 2}
        """
    )
    assert [policy.name for policy in config.routing.policies] == ["tenant", "cost", "latency"]
    assert dict(config.routing.policies[1].options) == {"max_usd": 0.02}
    assert (config.routing.router, config.routing.limits.max_attempts) == ("default", 3)
    assert [policy.name for policy in config.role_policies[Kind.CLASSIFICATION, "jailbreak"]] == ["latency"]
    signal = config.signals["jailbreak"]
    assert (signal.kind, signal.positive, signal.on_error) == (Kind.CLASSIFICATION, ("jailbreak",), "allow")
    assert config.prices == {
        BackendId("openai", "gpt-4o"): Price(input=Decimal("2.5"), output=Decimal("10.00"), per_request=Decimal(0))
    }
    assert (config.tenants["acme"].allow, config.tenants["acme"].deny) == (("openai:*",), ("openai:o1",))
    assert config.tenants["nobody"].allow == ()
    assert config.ledger.url is not None
    assert config.ledger.url.get_secret_value() == "sqlite:///ledger.db"
    assert [key.get_secret_value() for key in config.server.api_keys] == ["secret-one"]
    assert (config.plugins.only, config.plugins.disabled, config.plugins.strict) == (("torch",), ("other",), True)
    assert dict(config.plugins.precedence) == {"torch": "mine"}


@pytest.mark.parametrize(
    ("written", "where", "message"),
    [
        ("routing: {policies: [{a: {}, b: {}}]}", "routing.policies[0]", "expected a policy's name"),
        ("routing: {policies: [7]}", "routing.policies[0]", "expected a policy's name"),
        ("routing: {policies: [{a: 7}]}", "routing.policies[0]", "expected a mapping"),
        ("routing: {limits: {max_attempts: 21}}", "routing.limits.max_attempts", "less than or equal to 20"),
        ("routing: {limits: {timeout: 0}}", "routing.limits.timeout", "greater than 0"),
        ("signals: {a: {threshold: 0.5}}", "signals.a", "the key 'role' is missing"),
        ("signals: {a: {role: b, on_error: ignore}}", "signals.a.on_error", "expected one of 'allow', 'block'"),
        ("signals: {a: {role: b, kind: embedding}}", "signals.a.kind", "expected one of 'classification', "),
        ("prices: {gpt: {input: 1}}", "prices.gpt", "'gpt' is no backend id"),
        ("prices: {'a:b': {input: -1}}", "prices.a:b.input", "greater than or equal to 0"),
        ("prices: {'a:b': {input: cheap}}", "prices.a:b.input", "expected a number"),
        ("prices: {'a:b': {input: .inf}}", "prices.a:b.input", "expected a finite number"),
        ("tenants: {a: {allow: ['']}}", "tenants.a.allow[0]", "may not be empty"),
        ("ledger: {url: ''}", "ledger.url", "may not be empty"),
        ("server: {port: 70000}", "server.port", "less than or equal to 65535"),
        ("server: {api_keys: ['']}", "server.api_keys[0]", "may not be empty"),
        ("plugins: {timeout: 0}", "plugins.timeout", "greater than 0"),
        ("roles: {embeddings: {}}", "roles.embeddings", "unknown key; did you mean 'embedding'?"),
        ("rolls: {}", "rolls", "unknown key; did you mean 'roles'?"),
        ("server: 5", "server", "expected a mapping"),
    ],
)
def test_what_the_other_sections_may_not_say(refused, written, where, message):
    (problem,) = refused(written)
    assert problem.startswith(f"vsr.yaml:1: {where}: ")
    assert message in problem


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("backends: {torch: {threads: 100000}}", "backends.torch.threads"),
        ("plugins: {timeout: 1.0e+10}", "plugins.timeout"),
        ("routing: {limits: {timeout: 1.0e+300}}", "routing.limits.timeout"),
    ],
)
def test_more_than_a_machine_can_take_is_refused(write, text, key):
    with pytest.raises(ConfigError, match=key):
        load_config(write(text))


def numbers(model):
    """Every field of the sections of the schema that takes a number."""
    return [
        pytest.param(field, id=f"{section.__name__}.{name}")
        for section in model.__subclasses__()
        for name, field in section.model_fields.items()
        if re.search('"(number|integer)"', json.dumps(TypeAdapter(field.rebuild_annotation()).json_schema()))
        and not any(isinstance(item, type) and issubclass(item, Strict) for item in walk(field.annotation))
    ]


def walk(annotation):
    yield annotation
    for part in get_args(annotation):
        yield from walk(part)


@pytest.mark.parametrize("field", numbers(Strict))
@pytest.mark.parametrize("value", [True, False])
def test_true_and_false_are_no_numbers(field, value):
    with pytest.raises(ValidationError):
        TypeAdapter(field.rebuild_annotation()).validate_python(value)


@pytest.mark.parametrize(
    ("written", "where", "message"),
    [
        ("catalog: {m: {source: a, threshold: true}}", "catalog.m.threshold", "expected a number"),
        ("server: {port: true}", "server.port", "expected a whole number"),
        ("prices: {'a:b': {input: true}}", "prices.a:b.input", "expected a number"),
    ],
)
def test_a_truth_value_in_place_of_a_number_is_told_like_any_other_mistake(refused, written, where, message):
    assert refused(written) == [f"vsr.yaml:1: {where}: {message}"]


@pytest.mark.parametrize("threshold", [-3.5, 0, 1, 12])
def test_a_threshold_may_be_any_finite_number_since_raw_scores_are(load, threshold):
    assert load(f"catalog: {{m: {{source: a, threshold: {threshold}}}}}").catalog["m"].threshold == threshold
