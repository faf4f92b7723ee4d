"""The kit passes what is honest, and finds each fault by the one standard test that is for it."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

BACKEND = """
from vsr_core.contract import BackendDescriptor, hookimpl
from vsr_core.testing import BackendConformance


class Plugin:
    @hookimpl
    def vsr_backends(self):
        return [BackendDescriptor(name="subject", contract="1.0", factory="{factory}")]


class TestSubject(BackendConformance):
    plugin = Plugin()
    backend = "subject"
    light = ("plain_backend",)
    {body}
"""

ENGINE = """
import numpy as np
import plain_backend
from vsr_core.local import EngineOutput
from vsr_core.testing import EncoderEngineConformance


class Engine(plain_backend.PlainEngine):
    {body}


class TestEngine(EncoderEngineConformance):
    heads = ("embedding", "sequence")

    def make_engine(self, request):
        return Engine(request.path)
"""

PLUGIN = """
from vsr_core.testing import PluginConformance


class TestPlugin(PluginConformance):
    module = "{module}"
"""


@pytest.fixture
def installed(pytester):
    """Installs a plugin's module, as a distribution of its own would."""

    def install(module):
        folder = pytester.path / f"{module}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[vsr_core.plugins]\nplain = {module}\n")
        return PLUGIN.format(module=module)

    return install


def test_an_honest_backend_passes(conform):
    found = conform(BACKEND.format(factory="plain_backend:PlainBackend", body=""))
    assert found["failed"] == set()
    assert len(found["passed"]) > 25


def test_an_honest_engine_passes(conform):
    assert conform(ENGINE.format(body="pass"))["failed"] == set()


def test_an_honest_plugin_passes(conform, installed):
    found = conform(installed("plain_plugin").replace("module =", 'light = ("plain_backend",)\n    module ='))
    assert (found["failed"], found["skipped"]) == (set(), set())


QUICKER = """deviations = {
        name: "the test of another fault has it"
        for name in (
            "test_declaring_imports_no_framework",
            "test_declaring_uses_no_network",
            "test_loading_again_and_again_gives_memory_and_threads_back",
        )
    }"""

FAULTY_BACKENDS = {
    "WrongOrder": "test_answers_come_in_the_order_of_the_inputs",
    "BatchDependent": "test_an_answer_does_not_depend_on_the_others",
    "SilentTruncation": "test_what_is_cut_is_told",
    "NanPassedOn": "test_numbers_that_are_none_never_become_an_answer",
    "ClaimsAFamily": "test_a_claimed_capability_is_answered",
    "ClaimsTooMuch": "test_a_claimed_feature_works",
    "AnotherReason": "test_a_refused_feature_is_refused_before_anything_is_loaded",
    "MutableChoice": "test_models_of_one_adapter_do_not_mix",
}


@pytest.mark.parametrize(("fault", "test"), FAULTY_BACKENDS.items(), ids=FAULTY_BACKENDS)
def test_a_faulty_backend_fails_the_one_test_for_its_fault(conform, fault, test):
    assert conform(BACKEND.format(factory=f"faulty_backends:{fault}", body=QUICKER))["failed"] == {test}


def test_a_backend_that_imports_a_framework_to_declare_is_found(conform):
    heavy = "import framework\nfrom faulty_backends import Embedder"
    source = BACKEND.format(factory="heavy_backend:Embedder", body="").replace("plain_backend", "faulty_backends")
    found = conform(source, heavy_backend=heavy, framework="")
    assert found["failed"] == {"test_declaring_imports_no_framework"}


FAULTY_ENGINES = {
    "wrong order": (
        "test_rows_come_in_the_order_they_are_asked_in",
        """def run(self, batch):
        rows = super().run(batch).rows
        return EngineOutput(rows[::-1] if len(rows) == 8 else rows)""",
    ),
    "batch-dependent": (
        "test_an_answer_does_not_depend_on_the_batch",
        """def run(self, batch):
        first = batch.ids[0] if len(batch.offsets) > 3 else 0
        return EngineOutput([row + np.float32(1e-6 * first) for row in super().run(batch).rows])""",
    ),
    "changes its input": (
        "test_the_batch_is_left_as_it_was",
        """def run(self, batch):
        output = super().run(batch)
        batch.type_ids[:] = 1
        return output""",
    ),
    "pools otherwise": (
        "test_what_it_reduces_is_what_the_pipeline_would",
        """def answer(self, batch, row):
        answer = super().answer(batch, row)
        return answer * np.float32(1.1) if type(row.want).__name__ == "WantPooled" else answer""",
    ),
    "hides NaN": (
        "test_broken_weights_are_not_hidden",
        "def answer(self, batch, row): return np.nan_to_num(super().answer(batch, row))",
    ),
    "ignores layers": (
        "test_layers_differ_and_the_last_is_the_default",
        "def hidden(self, ids, layer): return super().hidden(ids, None)",
    ),
    "plans backwards": (
        "test_the_plan_of_memory_is_positive_and_grows",
        "def plan_bytes(self, shape): return 1_000_000 - shape.tokens",
    ),
    "is kept": (
        "test_closing_lets_go_of_it",
        """kept = []
    def __init__(self, folder):
        super().__init__(folder)
        self.kept.append(self)""",
    ),
}


@pytest.mark.parametrize(("test", "body"), FAULTY_ENGINES.values(), ids=FAULTY_ENGINES)
def test_a_faulty_engine_fails_the_one_test_for_its_fault(conform, test, body):
    assert conform(ENGINE.format(body=body))["failed"] == {test}


OFFER = "BackendDescriptor(name={name!r}, contract={contract!r}, factory='plain_backend:PlainBackend')"
GOOD = OFFER.format(name="plain", contract="1.0")
HEADER = "from vsr_core.contract import BackendDescriptor, FamilyDescriptor, hookimpl\n"
HOOK = HEADER + "@hookimpl\ndef {hook}():\n    return {answer}\n"
BACKENDS = HOOK.replace("{hook}", "vsr_backends")
FAULTY_PLUGINS = {
    "heavy import": ("test_the_module_is_light", "import numpy\n" + BACKENDS.format(answer=f"[{GOOD}]")),
    "duplicate registration": ("test_no_name_is_registered_twice", BACKENDS.format(answer=f"[{GOOD}, {GOOD}]")),
    "a family of the core": (
        "test_no_name_is_registered_twice",
        HOOK.format(hook="vsr_model_families", answer="[FamilyDescriptor(name='bert', contract='1.0')]"),
    ),
    "unknown hook": ("test_its_hooks_are_known", HOOK.format(hook="vsr_backend", answer="[]")),
    "no list": ("test_its_descriptors_are_valid", BACKENDS.format(answer=f"({GOOD} for _ in '1')")),
    "illegal name": (
        "test_its_names_are_legal",
        BACKENDS.format(answer=f"[{OFFER.format(name='Not A Name', contract='1.0')}]"),
    ),
    "another contract": (
        "test_the_contract_version_is_one_the_core_has",
        BACKENDS.format(answer=f"[{OFFER.format(name='plain', contract='2.0')}]"),
    ),
    "a factory that is not there": (
        "test_what_it_names_can_be_imported",
        BACKENDS.format(answer=f"[{GOOD.replace('PlainBackend', 'Nowhere')[:-1]}, configured_only=True)]"),
    ),
}


@pytest.mark.parametrize(("test", "source"), FAULTY_PLUGINS.values(), ids=FAULTY_PLUGINS)
def test_a_faulty_plugin_fails_the_one_test_for_its_fault(conform, installed, test, source):
    assert conform(installed("subject_plugin"), subject_plugin=source)["failed"] == {test}


def test_a_module_that_no_entry_point_names_is_found(conform):
    found = conform(PLUGIN.format(module="plain_plugin"))
    assert found["failed"] == {"test_an_entry_point_names_the_module"}
