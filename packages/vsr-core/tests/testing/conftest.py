"""Runs the kit on backends that are written for it."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import numpy as np  # noqa: F401 - what a run of the kit imports first, the next cannot import again
import pytest
import safetensors.numpy  # noqa: F401
import tokenizers  # noqa: F401
import vsr_core.local
import vsr_core.testing  # noqa: F401

HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def nothing_to_collect():
    """What is there already is no garbage: each model that is closed makes the collector look."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def conform(pytester):
    """Runs a test file; returns the names of the tests that failed, and of those that were skipped."""
    for name in ("plain_backend", "plain_plugin", "faulty_backends"):
        shutil.copy(HERE / f"{name}.py", pytester.path)
    pytester.syspathinsert()

    def run(source, **modules):
        pytester.makepyfile(test_kit=source, **modules)
        found = pytester.inline_run("-p", "no:cacheprovider", "-W", "error", "test_kit.py")
        outcomes = found.listoutcomes()
        assert any(outcomes), "nothing was collected"
        names = [{_name(report) for report in reports} for reports in outcomes]
        return {"passed": names[0], "skipped": names[1], "failed": names[2]}

    return run


def _name(report):
    return report.nodeid.rpartition("::")[2].partition("[")[0]
