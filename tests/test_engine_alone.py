"""An export serves where torch is not: in an environment with vsr-core and one engine's distribution alone."""

import json
import os
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from vsr_core import Runtime
from vsr_core.testing import EncoderShape, write_encoder

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]  # an installer fetches what is not at hand

ROOT = Path(__file__).parents[1]
TEXTS = ["the cat", "", "a dog is in the tree", "query one " * 40]
LAYERS = (None, 1)
CONFIGURATION = """
catalog:
  exported: {{source: ./export, layers: [1]}}
backends:
  {engine}: {{precision: fp32}}
"""
SEE = """
import importlib.util, sys
print(*(name for name in sys.argv[1:] if importlib.util.find_spec(name)))
"""
EMBED = """
import json, sys
from pathlib import Path
from vsr_core import Runtime
with Runtime(Path("vsr.yaml")) as runtime:
    for layer in (None, 1):
        print(json.dumps(runtime.embed(json.loads(sys.argv[1]), model="exported", layer=layer).vectors.tolist()))
frameworks = {name.partition(".")[0] for name in sys.modules} & {"torch", "transformers", "onnx"}
assert not frameworks, frameworks
"""


@dataclass(frozen=True)
class Place:
    """A virtual environment, and a folder with a configuration in it."""

    engine: str
    folder: Path

    def run(self, program, *arguments, code=0):
        """What a program of the environment prints."""
        path = next((self.folder / "venv").glob(f"[bS][ic][nr]*/{program}*"))
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VSR_"))}
        command = [str(path), *map(str, arguments)]
        done = subprocess.run(command, check=False, cwd=self.folder, env=environ, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("checkpoint") / "model", "bert", shape=EncoderShape(layers=3))


@pytest.fixture(scope="module")
def expected(checkpoint):
    """Torch's answers, in the environment that has it."""
    catalog = {"m": {"source": str(checkpoint), "pooling": ["mean"], "layers": [1], "backends": ["torch"]}}
    with Runtime({"catalog": catalog, "backends": {"torch": {"precision": "fp32"}}}) as runtime:
        return [runtime.embed(TEXTS, model="torch:m", layer=layer).vectors for layer in LAYERS]


@pytest.fixture(scope="module", params=["onnx", "openvino"])
def place(request, checkpoint, tmp_path_factory):
    """The export and the environment, and nothing else that could answer."""
    folder, engine = tmp_path_factory.mktemp(request.param), request.param
    with Runtime({"catalog": {"m": {"source": str(checkpoint), "pooling": ["mean"]}}}) as runtime:
        runtime.export("m", to=engine, out=folder / "export", layers=[1])
    (folder / "vsr.yaml").write_text(CONFIGURATION.format(engine=engine), encoding="utf-8")
    venv.create(folder / "venv", with_pip=True)
    found = Place(engine, folder)
    packages = [f"{ROOT / 'packages' / 'vsr-core'}[local]", ROOT / "packages" / f"vsr-{engine}"]
    found.run("python", "-m", "pip", "install", "--quiet", *packages)
    return found


def test_torch_is_not_there(place):
    assert place.run("python", "-c", SEE, "torch", "transformers", "onnx", "onnxscript", "vsr_core").split() == [
        "vsr_core"
    ]
    listed = json.loads(place.run("vsr", "plugins", "--json"))["plugins"]
    assert [plugin["distribution"] for plugin in listed] == [f"vsr-{place.engine}"]


def test_the_export_answers_as_torch_does_at_every_exit(place, expected):
    answers = place.run("python", "-c", EMBED, json.dumps(TEXTS)).splitlines()
    for answer, vectors in zip(map(json.loads, answers), expected, strict=True):
        np.testing.assert_allclose(answer, vectors, atol=1e-4)


def test_the_command_line_answers_too(place, expected):
    for layer, vectors in zip(LAYERS, expected, strict=True):
        exit_at = () if layer is None else ("--layer", layer)
        body = json.loads(place.run("vsr", "embed", *TEXTS, "--model", "exported", *exit_at, "--json"))
        np.testing.assert_allclose(body["vectors"], vectors, atol=1e-4)


def test_checking_says_that_torch_is_absent(place, checkpoint):
    assert "ok" in place.run("vsr", "check")
    entry = f"  source: {{source: {json.dumps(str(checkpoint))}, pooling: [mean], backends: [torch]}}\n"
    (place.folder / "torch.yaml").write_text(f"catalog:\n{entry}", encoding="utf-8")
    (problem,) = json.loads(place.run("vsr", "check", "--config", "torch.yaml", "--json", code=1))["problems"]
    message = "no installed plugin brings a backend called 'torch': pip install 'vsr-core[torch]'"
    assert (problem["code"], problem["message"]) == ("not_installed", message)
