"""OpenVINO's wheel reports every import over the network; imported from here it does not."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from vsr_core.contract import BackendContext
from vsr_openvino.adapter import OpenVinoBackend
assert OpenVinoBackend(BackendContext(name="openvino")).probe().usable
import vsr_openvino.loading, openvino.tools.ovc.telemetry_utils as reporting
assert not [name for name in sys.modules if name.startswith("openvino_telemetry")]
assert reporting.tm.__name__ == "openvino.tools.ovc.telemetry_stub"
import openvino_telemetry
"""


def test_probing_and_loading_import_no_telemetry_and_leave_it_importable():
    pytest.importorskip("openvino_telemetry")
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
