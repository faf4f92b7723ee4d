"""What each room exports is what it lists, and the top of the package is pinned."""

import importlib
import pkgutil
import subprocess
import sys

import pytest
import vsr_core

ROOMS = [
    "catalog",
    "config",
    "contract",
    "errors",
    "local",
    "models",
    "plugins",
    "routing",
    "runtime",
    "taxonomy",
    "testing",
    "wire",
]


def test_the_top_of_the_package_is_pinned():
    assert sorted(vsr_core.__all__) == ["AsyncRuntime", "Runtime", "VsrError", "__version__"]
    assert dir(vsr_core) == sorted(vsr_core.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Runtme'"):
        _ = vsr_core.Runtme


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_all_it_lists_and_lists_all_it_has(room):
    module = importlib.import_module(f"vsr_core.{room}")
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
    submodules = {each.name for each in pkgutil.iter_modules(getattr(module, "__path__", []))}
    hidden = (submodules - set(module.__all__)) | {"annotations"}
    public = {name for name in vars(module) if not name.startswith("_")} - hidden
    if hasattr(module, "__path__"):
        assert public == set(module.__all__)


def test_importing_the_package_imports_nothing_heavy():
    heavy = [
        "torch",
        "transformers",
        "onnxruntime",
        "openvino",
        "httpx",
        "numpy",
        "pydantic",
        "yaml",
        "typer",
        "rich",
        "sqlalchemy",
        "fastapi",
    ]
    code = f"import sys, vsr_core, vsr_core.contract; print(sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_runtime_imports_no_framework():
    heavy = ["torch", "transformers", "onnxruntime", "openvino", "httpx", "numpy"]
    code = (
        f"import sys; from vsr_core import Runtime; Runtime().close(); print(sorted(set({heavy!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
