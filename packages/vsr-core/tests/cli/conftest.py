"""Running ``vsr`` in this process or in one of its own, with a backend that needs no framework."""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
from vsr_core.cli import main
from vsr_core.testing import write_bert

PLUGIN = """
from vsr_core.contract import BackendDescriptor, hookimpl

@hookimpl
def vsr_backends():
    return [BackendDescriptor(name="toy", contract="1.0", factory="vsr_core.testing.toy:ToyBackend")]
"""


@dataclass
class Ran:
    """What a run left behind."""

    code: int
    out: str
    err: str

    @property
    def body(self):
        """The JSON object on stdout."""
        return json.loads(self.out)

    @property
    def error(self):
        """The JSON error on stderr."""
        found = json.loads(self.err)
        assert found["schema"] == 1
        return found["error"]


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    """An empty working folder, and an environment that says nothing about vsr."""
    for name in [name for name in os.environ if name.startswith(("VSR_", "HF_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("VSR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("VSR_PLUGINS", "toy")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def vsr(capsys, monkeypatch):
    """Run ``vsr`` with arguments and, if given, the bytes on stdin; there is never a traceback."""

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def process(tmp_path):
    """Run ``python -m vsr_core.cli`` in a process of its own."""

    def run(*arguments, stdin=b"", **environ):
        done = subprocess.run(
            [sys.executable, "-m", "vsr_core.cli", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, **environ},
            timeout=15,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Install a distribution with one plugin, as an installer would leave it."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")])))

    def install(name, source):
        module = f"planted_{name}"
        (site / f"{module}.py").write_text(source)
        metadata = site / f"dist_{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist-{name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[vsr_core.plugins]\n{name} = {module}\n")

    yield install
    for module in [module for module in sys.modules if module.startswith("planted_")]:
        del sys.modules[module]


@pytest.fixture
def toy(plant):
    """The backend ``toy`` is installed, and no other may be used."""
    plant("toy", PLUGIN)


@pytest.fixture
def write(tmp_path):
    """Write ``vsr.yaml``."""

    def config(text, name="vsr.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return config


@pytest.fixture
def mini(toy, write, tmp_path):
    """A configuration with one model, ``mini``, that the toy backend serves."""
    write_bert(tmp_path / "mini")
    return write("catalog:\n  mini: {source: mini}\n")


@pytest.fixture
def kinds(toy, write, tmp_path, heads):
    """A configuration with a model of each kind, of which each command finds its own."""
    write_bert(tmp_path / "mini")
    models = {"mini": "mini", "labels": "heads/sequence", "pairs": "heads/nli", "names": "heads/token"}
    catalog = "".join(f"  {name}: {{source: {source}}}\n" for name, source in models.items())
    return write(f"catalog:\n{catalog}roles:\n  classification: {{default: ['toy:labels', 'toy:pairs']}}\n")
