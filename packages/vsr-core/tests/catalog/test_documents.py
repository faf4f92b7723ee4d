from __future__ import annotations

import pytest
from vsr_core.catalog.documents import Document, inside, list_files, model_folder, read_document
from vsr_core.errors import CheckpointError


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "expected a JSON object"),
        ("null", "expected a JSON object"),
        (b"\xff\xfe\xff", "not UTF-8"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_object_is_refused_by_name(content, reason, write):
    folder = write({"config.json": content})

    with pytest.raises(CheckpointError, match=f"config.json: {reason}"):
        read_document(folder, "config.json")


def test_a_byte_order_mark_is_no_error(write):
    document = read_document(write({"config.json": b'\xef\xbb\xbf{"a": 1}'}), "config.json")

    assert document is not None
    assert document.integer("a") == 1


@pytest.mark.parametrize("value", ["8", True, 1.5, [8], float("inf")])
def test_a_value_of_the_wrong_type_is_refused_by_key(value, tmp_path):
    with pytest.raises(CheckpointError, match="'hidden_size' must be a whole number"):
        Document(tmp_path / "config.json", {"hidden_size": value}).integer("hidden_size")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "a\\..\\x", "c:x", "a\0b", 3, None])
def test_a_name_that_leaves_the_folder_is_refused(name, tmp_path):
    with pytest.raises(CheckpointError, match=r"modules\.json"):
        inside(name, tmp_path / "modules.json")


def test_hidden_files_and_deeper_folders_are_not_listed(write):
    folder = write({"a.json": {}, "b/c.json": {}, "b/d/e.json": {}, ".git/config": "", ".hidden": ""})

    assert list_files(folder) == {"a.json", "b/c.json"}


def test_folders_of_single_layers_are_looked_into(write):
    folder = write({"onnx/layer-6/model.onnx": b"1", "onnx/other/model.onnx": b"1", "onnx/layer-6/deep/x": b"1"})

    assert list_files(folder) == {"onnx/layer-6/model.onnx"}


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx", "onnx/layer-6/model.onnx", "openvino/m.xml"])
def test_a_graph_belongs_to_the_folder_with_the_configuration(name, write):
    folder = write({"config.json": {}, name: b"1"})

    assert model_folder(folder / name) == folder


def test_a_file_in_any_other_folder_belongs_to_that(write):
    folder = write({"config.json": {}, "other/model.onnx": b"1", "onnx/config.json": {}, "onnx/model.onnx": b"1"})

    assert model_folder(folder / "other" / "model.onnx") == folder / "other"
    assert model_folder(folder / "onnx" / "model.onnx") == folder / "onnx"
