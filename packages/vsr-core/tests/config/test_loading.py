"""Loading as a whole: every problem at once, at its line; secrets stay secret; a mapping equals its YAML."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from vsr_core.config import Configuration, load_config
from vsr_core.errors import ConfigError

CANARY = "sk-canary-8d1f"

EVERYTHING = """
catalog:
  minilm: {source: "pkg://package/path", backends: [torch, onnx]}
  intent: {base: minilm, adapter: "hf://org/intent"}
backends:
  torch: {precision: auto, threads: 2}
  work: {adapter: openai, base_url: "https://example.test", api_key: "${WORK_KEY}"}
roles:
  embedding: {default: ["onnx:minilm", "torch:minilm"], flat: minilm}
  generation:
    fast: ["work:small"]
    default: {model: "work:gpt-4o", fallback: ["torch:smol"], policies: [latency]}
  classification: {jailbreak: "torch:intent"}
routing: {policies: [tenant, context_window, {cost: {max_usd: 0.02}}], router: default, limits: {max_attempts: 4}}
signals: {jailbreak: {role: jailbreak, threshold: 0.7, positive: [jailbreak], on_error: block}}
prices: {"work:gpt-4o": {input: 2.5, output: 10}}
tenants: {acme: {allow: ["work:*"]}}
ledger: {url: "${LEDGER:-sqlite://}"}
server: {port: 8080, api_keys: ["${WORK_KEY}"]}
plugins: {disabled: [other], precedence: {torch: mine}}
"""


def test_the_whole_configuration_loads(load):
    config = load(EVERYTHING, {"WORK_KEY": CANARY})
    assert config.instances["work"].options["api_key"] == CANARY
    assert config.folder == config.path.parent
    assert [(str(kind), role) for kind, role, _ in config.roles.items()] == [
        ("classification", "jailbreak"),
        ("embedding", "default"),
        ("embedding", "flat"),
        ("generation", "default"),
        ("generation", "fast"),
    ]


def test_every_problem_is_reported_at_once_in_the_order_of_the_file(load):
    with pytest.raises(ConfigError) as caught:
        load(
            """\
            catalog:
              a: {sorce: x}
            backends:
              torch: {precison: auto, threads: none}
              work: {adapter: openai, api_key: "${NO_KEY}"}
            roles:
              embedding:
                default: [a, unknown, ":x"]
                cycle: cycle
            server: {port: "${NO_PORT}", host: ""}
            server: {}
            rotuing: {}
            """
        )
    lines = caught.value.message.splitlines()
    assert lines[0] == "11 problems in vsr.yaml"
    assert [line.rsplit(": ", 1)[0] for line in lines[1:]] == [
        "vsr.yaml:2: catalog.a.sorce",
        "vsr.yaml:4: backends.torch.precison",
        "vsr.yaml:4: backends.torch.threads",
        "vsr.yaml:5: backends.work.api_key",
        "vsr.yaml:7: roles.embedding: roles name each other in a cycle",
        "vsr.yaml:8: roles.embedding.default[1]",
        "vsr.yaml:8: roles.embedding.default[2]: ':x' is no backend id",
        "vsr.yaml:10: server.host",
        "vsr.yaml:10: server.port",
        "vsr.yaml:11: server",
        "vsr.yaml:12: rotuing",
    ]
    assert caught.value.problems == tuple(lines[1:])


def test_a_mapping_has_no_lines_and_is_called_config():
    with pytest.raises(ConfigError) as caught:
        load_config({"backends": {"torch": {"precison": "auto"}}}, environ={})
    assert caught.value.message == (
        "1 problem in config\nconfig: backends.torch.precison: unknown key; did you mean 'precision'?"
    )


def test_a_file_elsewhere_is_named_with_its_whole_path(tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("working"))
    path = tmp_path_factory.mktemp("elsewhere") / "vsr.yaml"
    path.write_text("rolls: {}", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert caught.value.problems == (f"{path}:1: rolls: unknown key; did you mean 'roles'?",)


@pytest.mark.parametrize(
    "written",
    [
        'server: {{api_keys: ["{0}"]}}',
        'ledger: {{url: "postgres://user:{0}@host/db"}}',
        'backends: {{work: {{adapter: openai, api_key: "{0}", headers: {{x-auth: "{0}"}}}}}}',
        'routing: {{policies: [{{budget: {{api_key: "{0}"}}}}]}}',
    ],
)
def test_a_secret_is_in_no_representation(load, written):
    config = load(written.format(CANARY))
    for shown in (repr(config), str(config), repr(config.origin), repr(config.instances), repr(config.routing)):
        assert CANARY not in shown


@pytest.mark.parametrize(
    "written",
    [
        'server: {{api_keys: {{a: "{0}"}}}}',
        'server: {{api_keys: [["{0}"]]}}',
        'ledger: {{url: ["{0}"]}}',
        'ledger: {{urll: "{0}"}}',
        'backends: {{work: {{adapter: "{0} ", api_key: "{0}"}}}}',
        'server: "{0}"',
        'catalog: {{m: "{0}"}}',
        'backends: {{work: {{device: "prefer:{0}:", threads: "{0}"}}}}\nledger: {{url: "{0}"}}\nserver: 5',
        'ledger:\n  url: "{0}"\n  url: "{0}2"',
    ],
)
def test_a_secret_is_in_no_error(refused, written):
    assert CANARY not in "\n".join(refused(written.format(CANARY)))


def test_the_folder_of_a_relative_path_does_not_change_with_the_working_folder(write, tmp_path, monkeypatch):
    write("server: {port: 1}")
    config = load_config("vsr.yaml")
    monkeypatch.chdir("/")
    assert config.folder == tmp_path


def test_a_secret_given_as_a_key_is_hidden_where_it_is_repeated(refused):
    (problem,) = refused(f'ledger: {{url: "{CANARY}"}}\nroles: {{embedding: {{default: "{CANARY}"}}}}')
    assert "'***' is neither" in problem


def test_settings_do_not_change(load):
    config = load(EVERYTHING, {"WORK_KEY": CANARY})
    with pytest.raises(Exception, match="frozen"):
        config.server.port = 1
    with pytest.raises(AttributeError):
        config.path = None
    with pytest.raises(TypeError):
        config.instances["work"].options["api_key"] = "other"


def test_equal_configurations_are_equal_whatever_their_layout(load):
    flow = load('roles: {embedding: {default: "torch:a"}}')
    block = load("roles:\n  embedding:\n    default:\n      model:\n      - torch:a\n")
    other = load('roles: {embedding: {default: "torch:b"}}')
    assert flow == block
    assert flow != other


def test_a_configuration_can_be_copied_and_pickled(load):
    config = load(EVERYTHING, {"WORK_KEY": CANARY})
    assert copy.deepcopy(config) == config
    assert pickle.loads(pickle.dumps(config)) == config


NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=12).map(
    lambda text: f"x{text}".replace("${", "")
)
ENTRIES = st.fixed_dictionaries(
    {"source": TEXTS},
    optional={
        "backends": st.lists(NAMES, max_size=2),
        "labels": st.lists(TEXTS, min_size=1, max_size=4, unique=True),
        "threshold": st.floats(0, 1),
        "normalize": st.booleans(),
        "max_tokens": st.integers(1, 10**6),
        "metadata": st.dictionaries(TEXTS, TEXTS, max_size=2),
        "prompts": st.dictionaries(TEXTS, TEXTS, max_size=2),
    },
)
INSTANCES = st.fixed_dictionaries(
    {},
    optional={
        "threads": st.integers(1, 64),
        "device": st.sampled_from(["auto", "prefer:cuda", "require:cpu"]),
        "option-of-its-own": st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
            max_leaves=5,
        ),
    },
)
CONFIGURATIONS = st.fixed_dictionaries(
    {},
    optional={
        "catalog": st.dictionaries(NAMES, ENTRIES, max_size=3),
        "backends": st.dictionaries(NAMES, INSTANCES, max_size=3),
        "roles": st.fixed_dictionaries(
            {},
            optional={
                "embedding": st.dictionaries(NAMES, st.lists(NAMES.map("t:{}".format), min_size=1, max_size=5)),
                "guard": st.dictionaries(NAMES, NAMES.map("t:{}".format)),
            },
        ),
        "prices": st.dictionaries(NAMES.map("t:{}".format), st.fixed_dictionaries({"input": st.floats(0, 1e6)})),
        "server": st.fixed_dictionaries({"port": st.integers(0, 65535)}),
    },
)


@settings(max_examples=40, deadline=None)
@given(mapping=CONFIGURATIONS, flow=st.booleans())
def test_a_mapping_loads_as_its_yaml_does(tmp_path_factory, mapping, flow):
    path = tmp_path_factory.getbasetemp() / "mapping.yaml"
    path.write_text(yaml.safe_dump(mapping, default_flow_style=flow, allow_unicode=True), encoding="utf-8")
    from_mapping, from_file = load_config(mapping, environ={}), load_config(path, environ={})
    assert without_path(from_file) == from_mapping
    assert from_file.roles.items() == from_mapping.roles.items()


def without_path(config: Configuration) -> Configuration:
    return dataclasses.replace(config, path=None)
