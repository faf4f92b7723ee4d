"""Sessions have the options that were set on purpose, and errors name the file and the way out."""

import subprocess
import sys

import numpy as np
import pytest
from vsr_core.errors import CheckpointError
from vsr_onnx.options import OnnxOptions
from vsr_onnx.providers import CPU
from vsr_onnx.session import SessionFactory

ON_CPU = [(CPU, {})]


def factory(threads=2, **options):
    return SessionFactory(options=OnnxOptions(**options), threads=threads, backend_id="onnx:m")


@pytest.fixture
def encoder(small):
    return small(vocabulary=50)


def test_every_option_reaches_the_session(encoder, tmp_path):
    path = encoder.write(tmp_path / "model.onnx")
    plain = factory().create(path, ON_CPU).get_session_options()
    assert (plain.intra_op_num_threads, plain.inter_op_num_threads) == (2, 1)
    assert (plain.enable_mem_pattern, plain.enable_cpu_mem_arena) == (False, True)
    assert plain.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert plain.get_session_config_entry("session.set_denormal_as_zero") == "1"
    other = (
        factory(1, arena=False, graph_optimization="basic", spinning=True, denormals_as_zero=False)
        .create(path, ON_CPU)
        .get_session_options()
    )
    assert (other.intra_op_num_threads, other.enable_cpu_mem_arena) == (1, False)
    assert other.graph_optimization_level.name == "ORT_ENABLE_BASIC"
    assert other.get_session_config_entry("session.intra_op.allow_spinning") == "1"
    assert other.get_session_config_entry("session.inter_op.allow_spinning") == "0"
    assert other.get_session_config_entry("session.set_denormal_as_zero") == "0"


def test_optimised_or_not_the_numbers_are_those_of_the_graph(encoder, tmp_path):
    path = encoder.write(tmp_path / "model.onnx")
    ids = np.array([[3, 9, 4]])
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    for level in ("off", "basic", "extended", "all"):
        (found,) = factory(graph_optimization=level).create(path, ON_CPU).run(None, feeds)
        np.testing.assert_allclose(found[0], encoder.forward(ids[0]), atol=1e-5)


def test_a_graph_of_a_newer_onnx_says_so(small, tmp_path):
    path = small(vocabulary=50, opset=99).write(tmp_path / "new.onnx")
    with pytest.raises(CheckpointError, match=r"new\.onnx.*newer ONNX.*upgrade onnxruntime.*lower opset"):
        factory().create(path, ON_CPU)


def test_an_operator_onnx_runtime_does_not_have_is_named(encoder, tmp_path):
    model = encoder.model()
    model.graph.node[0].op_type = "Nonsense"
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(CheckpointError, match=r"model\.onnx.*an operator that onnxruntime .* does not have.*Nonsense"):
        factory().create(tmp_path / "model.onnx", ON_CPU)


def test_a_damaged_file_says_what_to_do_and_nothing_is_printed(tmp_path, capfd):
    (tmp_path / "model.onnx").write_bytes(b"hello world")
    with pytest.raises(CheckpointError, match=r"model\.onnx.*export or fetch it again"):
        factory().create(tmp_path / "model.onnx", ON_CPU)
    assert capfd.readouterr() == ("", "")


def test_creating_a_session_leaves_the_callers_arithmetic_as_it_was(encoder, tmp_path):
    path = encoder.write(tmp_path / "model.onnx")
    code = (
        "import sys, onnxruntime; from vsr_onnx import session;"
        "options = onnxruntime.SessionOptions();"
        "options.add_session_config_entry('session.set_denormal_as_zero', '1');"
        "session._create(sys.argv[1], options, [('CPUExecutionProvider', {})]); sys.exit(5e-324 * 1.0 == 0.0)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 0


@pytest.mark.parametrize("needed", [True, False])
def test_exact_products_are_asked_for_where_the_processor_saturates(encoder, tmp_path, monkeypatch, needed):
    monkeypatch.setattr("vsr_onnx.session.saturates", lambda: needed)
    options = factory().create(encoder.write(tmp_path / "model.onnx"), ON_CPU).get_session_options()
    assert options.get_session_config_entry("session.x64quantprecision") == str(int(needed))
