import pytest

PLUGIN = """
from vsr_core.contract import BackendDescriptor, ExportReport, hookimpl

@hookimpl
def vsr_backends():
    factory = "vsr_core.testing.toy:ToyBackend"
    return [BackendDescriptor(name="paper", contract="1.0", factory=factory, exporter=f"{__name__}:export")]

def export(request):
    if request.quantize:
        raise KeyboardInterrupt
    request.progress("writing on paper")
    request.out.mkdir()
    (request.out / "page").write_text("x")
    return ExportReport(folder=request.out, manifest=request.out / "page", files=("page",), layers=request.layers,
                        max_abs=2e-6, texts=16, seconds=1.5)
"""


@pytest.fixture
def paper(mini, plant, monkeypatch):
    """The backend ``paper`` is installed too, and exports."""
    plant("paper", PLUGIN)
    monkeypatch.setenv("VSR_PLUGINS", "toy,paper")


def test_an_export_says_what_was_written_and_how_close_it_is(vsr, paper, tmp_path):
    ran = vsr("export", "toy:mini", "--to", "paper", "--out", "out", "--layers", "1,2")
    assert (ran.code, ran.err) == (0, "")
    assert "page" in ran.out
    assert "1, 2, 3" in ran.out
    assert "2.0e-06 at most, over 16 texts" in ran.out
    assert f"source: {tmp_path / 'out'}" in ran.out


def test_the_report_is_one_json_object(vsr, paper, tmp_path):
    body = vsr("export", "mini", "--to", "paper", "-o", "out", "--json").body
    assert body == {
        "schema": 1,
        "command": "export",
        "folder": str(tmp_path / "out"),
        "manifest": str(tmp_path / "out" / "page"),
        "files": ["page"],
        "layers": [3],
        "max_abs": 2e-6,
        "texts": 16,
        "seconds": 1.5,
        "cosine": None,
    }


def test_a_folder_with_something_in_it_is_refused(vsr, paper, tmp_path):
    ran = vsr("export", "mini", "--to", "paper", "--out", "mini", "--json")
    assert ran.code == 1
    assert (ran.error["code"], ran.error["param"]) == ("input_invalid", "out")


def test_a_backend_that_exports_nothing_is_refused_with_those_that_do(vsr, paper):
    ran = vsr("export", "mini", "--to", "toy", "--out", "out")
    assert ran.code == 1
    assert "those that do: paper" in ran.err


@pytest.mark.parametrize("layers", ["", "1;2", "one"])
def test_layers_that_are_no_numbers_are_a_wrong_command_line(vsr, paper, layers):
    ran = vsr("export", "mini", "--to", "paper", "--out", "out", "--layers", layers)
    assert ran.code == 2
    assert "--layers" in ran.err


@pytest.mark.parametrize("left_out", ["--to", "--out"])
def test_the_backend_and_the_folder_must_be_named(vsr, paper, left_out):
    arguments = {"--to": "paper", "--out": "out"}
    del arguments[left_out]
    ran = vsr("export", "mini", *(word for pair in arguments.items() for word in pair))
    assert ran.code == 2
    assert left_out in ran.err


def test_an_interruption_ends_with_its_code(process, paper):
    ran = process("export", "mini", "--to", "paper", "--out", "out", "--quantize", "int8")
    assert ran.code == 130
    assert "Traceback" not in ran.err
