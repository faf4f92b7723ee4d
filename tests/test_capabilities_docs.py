"""docs/capabilities.md against what the backends declare, and every claim against the tests there are."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from vsr_core.plugins import UNASKED, PluginHost
from vsr_core.taxonomy import Capability

from tests.capabilities_page import PAGE, page, unproven
from tests.evidence import DERIVED, SUITES

pytestmark = pytest.mark.timeout(90)  # the suites of the backends import their frameworks

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def host():
    found = PluginHost.discover(environ={})
    assert {"torch", "onnx", "openvino", "openai", "ollama"} == set(found.backends)
    yield found
    found.close()


def test_the_page_is_what_the_backends_declare(host):
    assert PAGE.read_text(encoding="utf-8") == page(host), "run `hatch run capabilities`"


def test_no_claim_is_without_a_test(host):
    assert unproven(host) == []


def test_what_the_core_computes_has_its_tests():
    assert {capability for capability in Capability if capability.derived_from} == {*DERIVED, *UNASKED}


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_is_named_exists():
    text = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`([\w/-]+\.py)::(\w+)", text)
    assert len(set(named)) == len(SUITES) + len(DERIVED) + 1  # that of adapters
    assert [test for path, test in named if test not in functions(path) | classes(path)] == []
    standard = functions("packages/vsr-core/src/vsr_core/testing/conformance/claiming.py")
    listed = re.findall(r"`(test_\w+)\[", text)
    assert len(listed) > 50
    assert set(listed) <= standard


def classes(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
