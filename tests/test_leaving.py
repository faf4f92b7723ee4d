"""A process may end, or fork, without having closed its runtime."""

import os
import subprocess
import sys
import textwrap
import time

import pytest
from vsr_core import Runtime
from vsr_core.errors import RuntimeClosedError
from vsr_core.testing import write_encoder

LEAVING = """
    import sys
    from vsr_core import Runtime
    from vsr_core.errors import DeadlineExceededError

    vsr = Runtime({"catalog": {"m": {"source": sys.argv[1]}}, "backends": {"torch": {"precision": "fp32"}}})
    vsr.classify("a word")
    try:
        vsr.classify(["the red river bank is on the tree"] * 6000, timeout=0.05)
    except DeadlineExceededError:
        print("late")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("m"), "bert", head="sequence")


def test_a_process_that_leaves_while_a_batch_runs_ends_cleanly(folder):
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(LEAVING), str(folder)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_leaves_the_runtime_of_its_parent_at_once(folder):
    with Runtime({"catalog": {"m": {"source": str(folder)}}}) as vsr:
        expected = vsr.classify("a word").results[0].label
        child = os.fork()
        if not child:
            began, code = time.monotonic(), 1
            try:
                vsr.classify("a word")
            except RuntimeClosedError:
                vsr.close()
                code = 0 if time.monotonic() - began < 5 else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert vsr.classify("a word").results[0].label == expected
