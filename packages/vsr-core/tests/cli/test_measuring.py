from vsr_core.cli.activity import Activity
from vsr_core.cli.measuring import measure

EXPORTER = """
from vsr_core.contract import BackendDescriptor, hookimpl
from vsr_core.errors import PluginError

def export(request):
    raise PluginError("no tracer is installed", plugin="traced", stage="run")

@hookimpl
def vsr_backends():
    return [
        BackendDescriptor(
            name="traced",
            contract="1.0",
            factory="vsr_core.testing.toy:ToyBackend",
            exporter="planted_traced:export",
        )
    ]
"""


def test_an_engine_without_an_exporter_is_timed_on_the_checkpoint(toy):
    (timing,) = measure(["toy"], Activity())
    assert timing.backend == "toy"
    assert timing.failure is None
    assert timing.texts_per_second > 0
    assert timing.device == "cpu"


def test_an_engine_that_gets_no_model_is_told_with_its_reason_and_the_others_are_timed(toy, plant, monkeypatch):
    plant("traced", EXPORTER)
    monkeypatch.setenv("VSR_PLUGINS", "toy,traced")
    traced, toy_ = measure(["traced", "toy"], Activity())
    assert traced.texts_per_second is None
    assert traced.failure == "no tracer is installed"
    assert toy_.texts_per_second > 0
