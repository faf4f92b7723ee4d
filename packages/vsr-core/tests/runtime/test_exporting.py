import errno
import sys
from types import ModuleType

import pytest
from vsr_core import Runtime
from vsr_core.contract import BackendDescriptor, ExportReport, hookimpl
from vsr_core.errors import CheckpointError, InvalidInputError, ModelNotFoundError, PluginError
from vsr_core.plugins import PluginHost
from vsr_core.testing import ToyPlugin, write_bert


class Exporting:
    """A plugin with a backend that exports."""

    @hookimpl
    def vsr_backends(self):
        factory, exporter = "vsr_core.testing.toy:ToyBackend", "an_exporter:export"
        return [BackendDescriptor(name="paper", contract="1.0", factory=factory, exporter=exporter)]


@pytest.fixture
def asked(monkeypatch):
    """What the exporter was asked; ``answer`` is what it gives or raises."""
    module = ModuleType("an_exporter")
    module.asked, module.answer = [], None

    def export(request):
        module.asked.append(request)
        if isinstance(module.answer, BaseException):
            raise module.answer
        return module.answer or ExportReport(
            folder=request.out,
            manifest=request.out / "manifest",
            files=(),
            layers=request.layers,
            max_abs=0.0,
            texts=1,
            seconds=0.1,
        )

    module.export = export
    monkeypatch.setitem(sys.modules, "an_exporter", module)
    return module


@pytest.fixture
def runtime(tmp_path, asked):
    host = PluginHost()
    host.register(ToyPlugin(), name="toy")
    host.register(Exporting(), name="exporting")
    source = str(write_bert(tmp_path / "tiny"))
    with Runtime({"catalog": {"tiny": {"source": source, "layers": [2]}}}, host=host) as made:
        yield made


@pytest.mark.parametrize("model", ["tiny", "toy:tiny"])
def test_the_exporter_is_told_the_files_their_hash_and_the_layers(runtime, asked, tmp_path, model):
    steps = []
    report = runtime.export(model, to="paper", out=tmp_path / "out", layers=[1], progress=steps.append)
    (request,) = asked.asked
    assert (request.source, request.path, request.entry.name) == (model, tmp_path / "tiny", "tiny")
    assert (request.out, request.layers, request.quantize) == (tmp_path / "out", (1, 2, 3), None)
    assert len(request.spec.content_hash) == 64
    assert report.layers == (1, 2, 3)
    assert steps == [f"reading {model}"]


def test_a_relative_folder_is_made_absolute(runtime, asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    runtime.export("tiny", to="paper", out="out", quantize="int8")
    assert asked.asked[0].out == tmp_path / "out"
    assert asked.asked[0].quantize == "int8"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"to": "toy"}, InvalidInputError, "'toy' exports no models; those that do: paper"),
        ({"to": "nosuch"}, ModelNotFoundError, "nosuch"),
        ({"model": "nosuch"}, ModelNotFoundError, "no model called 'nosuch'; it has tiny"),
        ({"model": "nosuch:tiny"}, ModelNotFoundError, "nosuch"),
        ({"model": "toy:nosuch"}, ModelNotFoundError, "no model called 'nosuch'"),
        ({"layers": [1, 4]}, InvalidInputError, "4 are not among the model's 3 layers"),
        ({"layers": [0]}, InvalidInputError, "0 are not among"),
        ({"quantize": "int4"}, InvalidInputError, "'int8' or left out, not 'int4'"),
        ({"out": "tiny"}, InvalidInputError, "not empty"),
        ({"out": "tiny/config.json"}, InvalidInputError, "is no folder"),
        ({"out": "gone/out"}, InvalidInputError, "there is no folder"),
    ],
)
def test_what_cannot_be_is_refused_before_the_exporter_is_asked(runtime, asked, tmp_path, arguments, error, text):
    given = {"model": "tiny", "to": "paper", "out": "out"} | arguments
    with pytest.raises(error, match=text):
        runtime.export(given.pop("model"), **given | {"out": tmp_path / given["out"]})
    assert asked.asked == []


def test_a_link_is_not_followed_into(runtime, asked, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with pytest.raises(InvalidInputError, match="is no folder"):
        runtime.export("tiny", to="paper", out=tmp_path / "link")


@pytest.mark.parametrize(
    ("raised", "error", "text"),
    [
        (CheckpointError("not this one"), CheckpointError, "^not this one$"),
        (ValueError("oops"), PluginError, "the exporter of 'paper' failed: ValueError: oops"),
        (SystemExit(3), PluginError, "sys.exit"),
        (PermissionError(errno.EACCES, "denied"), PluginError, "denied"),
        (OSError(errno.ENOSPC, "full"), OSError, "full"),
        (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
        ("a report", PluginError, "gave a str, not an ExportReport"),
    ],
)
def test_what_an_exporter_raises_becomes_an_error_of_ours_unless_it_is_one(
    runtime, asked, tmp_path, raised, error, text
):
    asked.answer = raised
    with pytest.raises(error, match=text):
        runtime.export("tiny", to="paper", out=tmp_path / "out")


def test_an_exporter_that_cannot_be_imported_is_named(runtime, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "an_exporter")
    with pytest.raises(PluginError, match="the exporter of 'paper' failed: ModuleNotFoundError"):
        runtime.export("tiny", to="paper", out=tmp_path / "out")
