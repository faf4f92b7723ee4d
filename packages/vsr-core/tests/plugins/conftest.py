from __future__ import annotations

import importlib
import itertools
import sys
import textwrap
from collections.abc import Mapping

import pydantic  # noqa: F401 - the site below hides where it is installed
import pytest
from vsr_core.plugins import PluginHost, PluginSettings

HEADER = """
from vsr_core.contract import *
from vsr_core.taxonomy import *
from vsr_core.errors import *
"""


SERIAL = itertools.count()
"""A module that still hangs in one test holds the import lock of its name in the next."""


class Site:
    """A folder on ``sys.path`` into which distributions are installed as an installer would leave them."""

    def __init__(self, folder):
        self.folder = folder

    def install(self, distribution, version="1.0", *, plugins: Mapping[str, str], folder=None, form="dist-info"):
        """Write the metadata of a distribution whose entry points are ``name -> value``."""
        root = folder or self.folder
        stem = f"{distribution.replace('-', '_')}-{version}"
        metadata = root / f"{stem}.{form}"
        metadata.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        (metadata / ("METADATA" if form == "dist-info" else "PKG-INFO")).write_text(text)
        lines = [f"{name} = {value}" for name, value in plugins.items()]
        (metadata / "entry_points.txt").write_text("\n".join(["[vsr_core.plugins]", *lines, ""]))
        return metadata

    def module(self, name, source):
        """Write a module; the names of the contract, the taxonomy and the errors are there."""
        (self.folder / f"{name}.py").write_text(HEADER + textwrap.dedent(source))
        importlib.invalidate_caches()
        return name

    def plugin(self, name, source, *, distribution=None, version="1.0"):
        """Install a distribution with one plugin, in a module of its own."""
        module = self.module(f"planted_{name.replace('-', '_')}_{next(SERIAL)}", source)
        self.install(distribution or f"dist-{name}", version, plugins={name: module})

    def discover(self, *, environ=None, **settings):
        settings.setdefault("timeout", 5.0)
        return PluginHost.discover(PluginSettings(**settings), environ=environ or {})


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An installation in which nothing but what the test installs has plugins."""
    folder = tmp_path / "site"
    folder.mkdir()
    elsewhere = [entry for entry in sys.path if "site-packages" not in entry]
    monkeypatch.setattr(sys, "path", [str(folder), *elsewhere])
    before = set(sys.modules)
    yield Site(folder)
    for name in set(sys.modules) - before:
        if name.startswith("planted"):
            del sys.modules[name]


@pytest.fixture
def record_of():
    """A plugin's record in the report of a host."""

    def find(host, name):
        found = [record for record in host.report().plugins if record.name == name]
        assert len(found) == 1, found
        return found[0]

    return find


@pytest.fixture
def backend_plugin():
    """The source of a plugin with one backend."""

    def source(name="echo", contract="1.0", factory="planted_engine:Adapter", **more):
        fields = "".join(f", {key}={value!r}" for key, value in more.items())
        return f"""
            @hookimpl
            def vsr_backends():
                return [BackendDescriptor(name={name!r}, contract={contract!r}, factory={factory!r}{fields})]
        """

    return source
