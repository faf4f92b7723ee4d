"""docs/configuration.md against the schema: every key with its default, and every example loads."""

import dataclasses
import re
from pathlib import Path

import pytest
import yaml
from vsr_core.config import load_config
from vsr_core.config.environment import is_secret_key
from vsr_core.config.schema import ConfigDocument
from vsr_core.contract import Preference
from vsr_core.errors import ConfigError
from vsr_core.taxonomy import Kind
from vsr_onnx.options import OnnxOptions
from vsr_openvino.options import OpenVinoOptions

DOCUMENT = (Path(__file__).parents[1] / "docs" / "configuration.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", DOCUMENT, re.DOTALL | re.MULTILINE))
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
ENVIRON = {"VSR_SERVER_KEY": "key", "LEDGER_URL": "sqlite://"}


def _schema():
    return ConfigDocument.model_json_schema(mode="validation")


def _models(node, schema):
    """Every object with named keys in a schema, without those within it."""
    if isinstance(node, list):
        return [model for item in node for model in _models(item, schema)]
    if not isinstance(node, dict):
        return []
    if "$ref" in node:
        return _models(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    if "properties" in node:
        return [node]
    return [model for value in node.values() for model in _models(value, schema)]


def _keys(model, schema, prefix=""):
    """Each key path below an object with its default; None for a key that is required or has none."""
    for name, field in model["properties"].items():
        inner = _models(field, schema)
        if inner and "items" not in field:
            yield from _keys(inner[0], schema, f"{prefix}{name}.")
        else:
            yield prefix + name, name in model.get("required", ()), field.get("default")


def _documented(section):
    """Key path -> the cell of its default, from the section's tables."""
    rows = re.findall(r"^\| `([\w.]+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", SECTIONS[section], re.MULTILINE)
    return {key: default.strip() for key, default in rows}


def _expected():
    schema = _schema()
    for section, field in schema["properties"].items():
        for key, required, default in _keys(_models(field, schema)[0], schema):
            yield section, key, required, default


EXPECTED = list(_expected())


def test_every_section_has_its_chapter():
    assert set(SECTIONS) == set(ConfigDocument.model_fields)


def test_no_key_is_documented_that_does_not_exist():
    known = {(section, key) for section, key, _, _ in EXPECTED}
    assert {(section, key) for section in SECTIONS for key in _documented(section)} - known == set()


@pytest.mark.parametrize(
    ("section", "key", "required", "default"), EXPECTED, ids=[f"{section}.{key}" for section, key, _, _ in EXPECTED]
)
def test_a_key_is_documented_with_its_default(section, key, required, default):
    cell = _documented(section)[key]
    if required:
        assert cell == "required"
    elif default is None:
        assert cell == "none"
    else:
        shown = yaml.safe_load(cell.strip("`"))
        assert shown == ("auto" if default == {"mode": "auto", "value": None} else default)


def test_the_default_policy_is_auto():
    assert str(Preference()) == "auto"


@pytest.mark.parametrize("example", EXAMPLES, ids=[text.partition("\n")[0] for text in EXAMPLES])
def test_an_example_loads(example, tmp_path):
    path = tmp_path / "vsr.yaml"
    path.write_text(example, encoding="utf-8")
    assert load_config(path, environ=ENVIRON).path == path


def test_every_section_has_an_example():
    shown = {key for example in EXAMPLES for key in yaml.safe_load(example)}
    assert shown == set(ConfigDocument.model_fields)


def test_the_errors_shown_are_those_of_the_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("vsr.yaml").write_text("catalog:\n  minilm: {sorce: a, source: b}\nbackends:\n  torch: {threads: many}\n")
    with pytest.raises(ConfigError) as caught:
        load_config("vsr.yaml", environ={})
    assert f"```text\n{caught.value.message}\n```" in DOCUMENT


def test_the_kinds_of_roles_are_named():
    assert [kind for kind in Kind.values() if f"`{kind}`" not in SECTIONS["roles"]] == []


def test_the_keys_said_to_be_secret_are():
    sentence = re.search(r"are called like secrets \(([^)]*)\)", DOCUMENT)[1]
    assert all(is_secret_key(name) for name in re.findall(r"`(\w+)`", sentence))


def test_the_options_of_every_backend_are_listed_with_their_defaults():
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| [^|]+ \| `([^`|]+)` \| [^|]+ \|$", SECTIONS["backends"], re.MULTILINE)
    declared = {
        ("onnx", OnnxOptions): [field.name for field in dataclasses.fields(OnnxOptions)],
        ("openvino", OpenVinoOptions): [field.name for field in dataclasses.fields(OpenVinoOptions)],
    }
    expected = {
        (backend, name, str(getattr(options(), name)).lower())
        for (backend, options), names in declared.items()
        for name in names
    }
    assert set(rows) == expected
