from __future__ import annotations

import onnx
import pytest
from onnx import helper
from vsr_core.errors import CheckpointError
from vsr_openvino.opset import NEWEST_OPSET, check_opset


@pytest.mark.parametrize("opset", [17, 20, NEWEST_OPSET])
def test_operator_sets_that_openvino_knows_pass(tmp_path, model, write_onnx, opset):
    check_opset(write_onnx(tmp_path / "model.onnx", model, opset=opset))


def test_a_newer_one_is_refused_with_the_way_out(tmp_path, model, write_onnx):
    path = write_onnx(tmp_path / "model.onnx", model, opset=NEWEST_OPSET + 1)
    with pytest.raises(CheckpointError, match=f"model.onnx uses ONNX operator set {NEWEST_OPSET + 1}.*export it"):
        check_opset(path)


def test_other_domains_have_numbers_of_their_own(tmp_path, model):
    proto = model.proto()
    proto.opset_import.append(helper.make_opsetid("com.example", 900))
    onnx.save_model(proto, tmp_path / "model.onnx")
    check_opset(tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "content", [b"", b"hello, this is no graph", b"\x08\x0a", b"\xff" * 40, b"\x3a\xff\xff\xff\x7f"]
)
def test_what_is_no_onnx_file_is_refused(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(CheckpointError, match="is no ONNX file, or is cut short"):
        check_opset(tmp_path / "model.onnx")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"absent\.onnx cannot be read"):
        check_opset(tmp_path / "absent.onnx")
