"""Listing plugins costs a listing: no framework, no validation library, no arrays."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import json, sys
from vsr_core.plugins import BackendInstances, PluginHost
from vsr_core.wire import to_json
host = PluginHost.discover(environ={})
json.dumps(to_json(host.report()))
BackendInstances(host).names()
print(json.dumps([sorted(sys.modules), [plugin.status for plugin in host.report().plugins]]))
"""

HEAVY = {"torch", "transformers", "onnxruntime", "openvino", "httpx", "numpy", "pydantic", "tokenizers", "safetensors"}


def test_discovering_and_listing_what_is_installed_imports_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    modules, statuses = json.loads(done.stdout)
    assert HEAVY.isdisjoint(modules)
    assert set(statuses) <= {"active"}
