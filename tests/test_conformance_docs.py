"""docs/conformance.md against the kit: every standard test, everything an author may say, and the example as it stands."""

import re
from pathlib import Path

import pytest
from vsr_core.testing import BackendConformance, EncoderEngineConformance, PluginConformance

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
EXAMPLE = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE))
KITS = [BackendConformance, EncoderEngineConformance, PluginConformance]
FIXTURES = {"bench", "folders", "pytest_generate_tests", "look", "plugin", "host", "load", "engine", "head", "want"}
FIXTURES |= {"usable", "make_model", "entry", "descriptor"}


@pytest.mark.parametrize("kit", KITS)
def test_every_standard_test_is_listed(kit):
    assert [name for name in dir(kit) if name.startswith("test_") and f"`{name}`" not in DOCUMENT] == []


def test_no_test_is_listed_that_does_not_exist():
    known = {name for kit in KITS for name in dir(kit)}
    assert set(re.findall(r"`(test_\w+)`", DOCUMENT)) <= known


@pytest.mark.parametrize("kit", KITS)
def test_everything_an_author_may_say_is_named(kit):
    said = {name for base in kit.__mro__ for name in (*vars(base), *getattr(base, "__annotations__", ()))}
    said = {name for name in said if not name.startswith(("_", "test_"))} - FIXTURES - set(dir(object))
    assert {name for name in said if f"`{name}`" not in DOCUMENT} == set()


def test_the_example_passes(pytester):
    assert set(EXAMPLE) == {"plain_backend.py", "plain_plugin.py", "test_conformance.py"}
    for name, content in EXAMPLE.items():
        (pytester.path / name).write_text(content)
    metadata = pytester.path / "plain-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plain\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[vsr_core.plugins]\nplain = plain_plugin\n")
    pytester.syspathinsert()
    outcomes = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rs").parseoutcomes()
    assert outcomes.get("failed", 0) == outcomes.get("errors", 0) == 0
    assert outcomes["passed"] > 60
