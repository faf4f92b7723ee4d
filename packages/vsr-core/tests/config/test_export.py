"""The JSON Schema: it knows every key, explains each, and accepts what the loader accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from vsr_core.config import json_schema

EXAMPLE = """
catalog:
  minilm: {source: "pkg://package/path", capability: embedding, dimensions: [384]}
  intent: {base: minilm, adapter: "hf://org/intent", labels: labels.json, threshold: "${THRESHOLD:-0.5}"}
backends:
  torch: {precision: auto, threads: 2, batching: {max_batch_tokens: 4096}}
  work: {adapter: openai, base_url: "https://example.test", api_key: "${WORK_KEY}"}
roles:
  embedding: {default: ["onnx:minilm", "torch:minilm"], one: "torch:minilm"}
  generation: {default: {model: "work:gpt-4o", fallback: ["torch:smol"], policies: [latency, {cost: {max_usd: 1}}]}}
routing: {policies: [tenant, {cost: {max_usd: 0.02}}], router: default, limits: {max_attempts: 4, timeout: 10}}
signals: {jailbreak: {role: jailbreak, threshold: 0.7, positive: [jailbreak], on_error: block}}
prices: {"work:gpt-4o": {input: 2.5, output: "10.0"}}
tenants: {acme: {allow: ["work:*"]}}
ledger: {url: "${LEDGER}"}
server: {port: "${PORT:-8080}", api_keys: ["${WORK_KEY}"]}
plugins: {disabled: [other], precedence: {torch: mine}, timeout: 5}
"""


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json_schema()


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "properties" in node:
            yield node
        for value in node.values():
            yield from objects(value)
    elif isinstance(node, list):
        for value in node:
            yield from objects(value)


def described(schema: dict[str, Any], part: dict[str, Any]) -> bool:
    if "description" in part:
        return True
    return "$ref" in part and "description" in schema["$defs"][part["$ref"].rpartition("/")[2]]


def fits(schema: dict[str, Any], node: Any, value: Any) -> bool:
    """The part of JSON Schema that the exported schema uses."""
    if "$ref" in node:
        return fits(schema, schema["$defs"][node["$ref"].rpartition("/")[2]], value)
    for key in ("anyOf", "oneOf"):
        if key in node and not any(fits(schema, one, value) for one in node[key]):
            return False
    if "enum" in node and value not in node["enum"]:
        return False
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    if node.get("type") == "null":
        return value is None
    if "type" in node and not isinstance(value, kinds[node["type"]]):
        return False
    if "pattern" in node and isinstance(value, str) and not re.search(node["pattern"], value):
        return False
    if isinstance(value, list) and "items" in node:
        return all(fits(schema, node["items"], item) for item in value)
    if not isinstance(value, dict) or node.get("type") != "object":
        return True
    others = node.get("additionalProperties", True)
    names = node.get("propertyNames", {})
    return set(node.get("required", ())) <= set(value) and all(
        fits(schema, names, key)
        and (
            fits(schema, node["properties"][key], item)
            if key in node.get("properties", {})
            else others
            if isinstance(others, bool)
            else fits(schema, others, item)
        )
        for key, item in value.items()
    )


def test_it_is_a_draft_2020_12_schema_in_plain_json(schema):
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "vsr configuration"
    assert json.loads(json.dumps(schema)) == schema


def test_it_has_exactly_the_sections_there_are(schema):
    assert set(schema["properties"]) == {
        "catalog", "backends", "roles", "routing", "signals", "prices", "tenants", "ledger", "server", "plugins",
    }  # fmt: skip


def test_every_key_is_explained(schema):
    keys = [(node["title"], key, part) for node in objects(schema) for key, part in node["properties"].items()]
    assert len(keys) > 50
    assert [(title, key) for title, key, part in keys if not described(schema, part)] == []


def test_unknown_keys_are_refused_everywhere_but_among_the_options_of_a_backend(schema):
    open_ended = [node["title"] for node in objects(schema) if node.get("additionalProperties") is not False]
    assert open_ended == ["BackendSettings"]


def test_the_example_fits(schema):
    assert fits(schema, schema, yaml.safe_load(EXAMPLE))


@pytest.mark.parametrize(
    "wrong",
    [
        {"rolls": {}},
        {"catalog": {"a": {"sorce": "x"}}},
        {"roles": {"embeddings": {}}},
        {"roles": {"embedding": {"default": {"fallback": ["a:b"]}}}},
        {"routing": {"limits": {"max_attempts": "many"}}},
        {"signals": {"a": {"role": "b", "on_error": "ignore"}}},
        {"server": {"port": [1]}},
    ],
)
def test_what_is_wrong_does_not_fit(schema, wrong):
    assert not fits(schema, schema, wrong)


def test_the_example_loads(load):
    assert load(EXAMPLE, {"WORK_KEY": "k", "LEDGER": "sqlite://"}).catalog["intent"].threshold == 0.5
