from __future__ import annotations

from pathlib import Path

import pytest
from vsr_core.catalog import LabelMap, load_labels, resolve_labels
from vsr_core.contract import CatalogEntry, ModelSpec
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Artifact, Capability

REFERENCE = next(
    (up / "shared" / "data" / "go-router" for up in Path(__file__).parents if (up / "shared" / "data").is_dir()), None
)


@pytest.mark.parametrize(
    "content",
    [
        {"label_to_idx": {"benign": 0, "jailbreak": 1}, "idx_to_label": {"0": "benign", "1": "jailbreak"}},
        {"label_to_id": {"benign": 0, "jailbreak": 1}, "id_to_label": {"0": "benign", "1": "jailbreak"}},
        {"label2id": {"jailbreak": "1", "benign": "0"}, "id2label": {"1": "jailbreak", "0": "benign"}},
        {"category_to_idx": {"benign": 0, "jailbreak": 1}, "category_descriptions": {"benign": "..."}},
        {"idx_to_category": {"0": "benign", "1": "jailbreak"}},
        {"label_to_idx": {"benign": 0, "jailbreak": 1}, "description": "..."},
        ["benign", "jailbreak"],
        {"labels": ["benign", "jailbreak"]},
        {"version": "1", "labels": {"benign": {"exemplars": []}, "jailbreak": {"description": ""}}},
        {"model_type": "bert", "id2label": {"0": "benign", "1": "jailbreak"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}},
    ],
)
def test_every_spelling_is_read(content, write):
    assert load_labels(write({"m.json": content}) / "m.json") == LabelMap(("benign", "jailbreak"))


def test_yaml_and_text_files_are_read(write):
    folder = write(
        {
            "m.yaml": "idx_to_label: {0: benign, 1: jailbreak}\n",
            "l.yml": "- a\n- b\n",
            "n.txt": "benign\n\n jailbreak \n",
        }
    )

    assert load_labels(folder / "m.yaml").labels == ("benign", "jailbreak")
    assert load_labels(folder / "l.yml").labels == ("a", "b")
    assert load_labels(folder / "n.txt").labels == ("benign", "jailbreak")


def test_more_than_ten_labels_are_ordered_as_numbers(write):
    path = write({"m.json": {"id2label": {str(i): f"n{i}" for i in reversed(range(12))}}}) / "m.json"

    assert load_labels(path).labels == tuple(f"n{i}" for i in range(12))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"label_to_idx": {"a": 0, "b": 2}}, "none at index 1"),
        ({"label_to_idx": {"a": 1, "b": 2}}, "none at index 0"),
        ({"label_to_idx": {"a": 0, "b": 0}}, "gives index 0 to both 'a' and 'b'"),
        ({"label_to_idx": {"a": 0, "b": -1}}, "-1 where an index should be"),
        ({"label_to_idx": {"a": 0, "b": True}}, "True where an index should be"),
        ({"id2label": {"0": "a", "00": "b"}}, "has index 0 twice"),
        ({"id2label": {"0": "a", "1": "a"}}, "'a' is at index 0 and at index 1"),
        ({"id2label": {"0": 7}}, "the label at index 0 must be a string"),
        (
            {"label_to_idx": {"a": 0, "b": 1}, "idx_to_label": {"0": "b", "1": "a"}},
            "index 0 is 'a' by label_to_idx and 'b' by idx_to_label",
        ),
        ({"label_to_idx": {"a": 0, "b": 1}, "idx_to_label": {"0": "a"}}, "2 labels and idx_to_label 1"),
        (
            {"label_to_idx": {"benign": 0, "classification_error": 1}},
            "index 1 is 'classification_error', a name reserved",
        ),
        (["a", " "], "index 1 is empty"),
        ([], "has no labels"),
        ({"something": {}}, "has none of label_to_idx"),
        ("text", "expected a label map"),
        ({"model_type": "bert", "id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, "only placeholders"),
    ],
)
def test_a_wrong_map_is_refused_by_file_and_index(content, reason, write):
    path = write({"m.json": content if not isinstance(content, str) else '"text"'}) / "m.json"

    with pytest.raises(CheckpointError, match=r"m\.json: ") as caught:
        load_labels(path)
    assert reason in str(caught.value)


def test_a_file_that_is_not_there_or_no_yaml_is_refused(write, tmp_path):
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_labels(tmp_path / "missing.txt")
    with pytest.raises(CheckpointError, match="not YAML"):
        load_labels(write({"m.yaml": "a: [1"}) / "m.yaml")


@pytest.mark.skipif(REFERENCE is None, reason="the reference router's files are not here")
@pytest.mark.parametrize(("name", "count"), [("kb-mmlu-labels.json", 14), ("kb-privacy-labels.json", 18)])
def test_the_reference_routers_knowledge_bases_are_read(name, count):
    assert REFERENCE is not None
    assert len(load_labels(REFERENCE / name).labels) == count


def spec(labels=None):
    return ModelSpec(
        capabilities=(Capability.SEQUENCE_CLASSIFICATION,), family="bert", artifact=Artifact.FULL, labels=labels
    )


def test_an_entrys_labels_go_before_those_of_the_files(tmp_path):
    assert resolve_labels(CatalogEntry(name="m"), spec(("a", "b")), tmp_path) == ("a", "b")
    assert resolve_labels(CatalogEntry(name="m", labels=("x", "y")), spec(), tmp_path) == ("x", "y")
    assert resolve_labels(CatalogEntry(name="m"), spec(), tmp_path) is None


def test_a_label_file_is_looked_for_beside_the_configuration_and_then_in_the_model(write):
    model = write({"m.json": ["model", "files"]}, "model")
    conf = write({"other.json": ["x", "y"]}, "conf")
    entry = CatalogEntry(name="m", labels="m.json")

    assert resolve_labels(entry, spec(), model, conf) == ("model", "files")
    write({"m.json": ["conf", "files"]}, "conf")
    assert resolve_labels(entry, spec(), model, conf) == ("conf", "files")
    with pytest.raises(CheckpointError, match=r"'m': no label file 'none.json'"):
        resolve_labels(CatalogEntry(name="m", labels="none.json"), spec(), model, conf)


def test_a_label_file_that_contradicts_the_model_is_refused(write):
    conf = write({"m.json": ["b", "a"]}, "conf")

    with pytest.raises(CheckpointError, match=r"has the labels \(b, a\), the model's own files \(a, b\)"):
        resolve_labels(CatalogEntry(name="m", labels="m.json"), spec(("a", "b")), conf, conf)
