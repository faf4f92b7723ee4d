"""What the distributions of this repository promise to the plugin host, as written and as installed."""

from __future__ import annotations

import ast
import importlib.metadata
import sys
import tomllib
from pathlib import Path

import pytest
from vsr_core.contract import ENTRY_POINT_GROUP
from vsr_core.plugins import PluginHost

MEMBERS = sorted(path.parent for path in Path(__file__).parents[1].glob("packages/*/pyproject.toml"))


def project(member):
    return tomllib.loads((member / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def installed(name):
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not part of this environment")


def test_every_member_but_the_core_is_a_plugin():
    plugins = {
        project(member)["name"] for member in MEMBERS if ENTRY_POINT_GROUP in project(member).get("entry-points", {})
    }
    assert plugins == {project(member)["name"] for member in MEMBERS} - {"vsr-core"}
    assert len(plugins) == 5


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_what_is_installed_has_the_entry_points_that_are_written(member):
    written = project(member)
    found = installed(written["name"])
    assert found.version == written["version"]
    assert {(point.name, point.value) for point in found.entry_points if point.group == ENTRY_POINT_GROUP} == set(
        written.get("entry-points", {}).get(ENTRY_POINT_GROUP, {}).items()
    )


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_an_entry_point_names_the_plugin_module_of_its_own_package(member):
    for value in project(member).get("entry-points", {}).get(ENTRY_POINT_GROUP, {}).values():
        assert value == f"{member.name.replace('-', '_')}.plugin"
        assert (member / "src" / Path(*value.split("."))).with_suffix(".py").is_file()


@pytest.mark.parametrize(
    "member", [each for each in MEMBERS if each.name != "vsr-core"], ids=lambda member: member.name
)
def test_a_plugin_module_imports_the_contract_and_the_standard_library_only(member):
    package = member / "src" / member.name.replace("-", "_")
    imported = _imports(package / "plugin.py")
    for beside in [name for name in imported if name.startswith(".")]:
        imported |= _imports((package / beside.lstrip(".")).with_suffix(".py"))
        imported.discard(beside)
    assert {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names} <= {
        "vsr_core.contract",
        "vsr_core.taxonomy",
    }


def _imports(source):
    imported = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add("." * node.level + (node.module or ""))
    return imported


def test_everything_that_is_installed_is_an_active_plugin():
    report = PluginHost.discover(environ={}).report()
    ours = {project(member)["name"] for member in MEMBERS}
    assert {
        record.name: record.reason for record in report.plugins if record.distribution in ours and record.reason
    } == {}
    assert all(record.version == "0.1.0" for record in report.plugins if record.distribution in ours)
