from __future__ import annotations

from pathlib import Path

import pytest
from vsr_core.catalog import LabelMap, load_labels
from vsr_core.catalog.documents import Document
from vsr_core.catalog.labels import labels_of_config, stated_labels
from vsr_core.contract import CatalogEntry
from vsr_core.errors import CheckpointError

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
        ([], "no label is named"),
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


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("[no, yes, on, off, NO, y]", ("no", "yes", "on", "off", "NO", "y")),
        ("labels: [true, False, null, ~, Null]", ("true", "False", "null", "~", "Null")),
        ("- 2024-01-31\n- 12:30\n- 1_000\n- 0x1F\n- 1e3\n", ("2024-01-31", "12:30", "1_000", "0x1F", "1e3")),
        ("label_to_idx: {no: 0, yes: 1}", ("no", "yes")),
        ("id2label: {1: off, 0: on}", ("on", "off")),
        ("id2label: {'1': off, 00: on}", ("on", "off")),
        ("base: &base {no: 0}\nlabel2id: {<<: *base, yes: 1}", ("no", "yes")),
    ],
)
def test_every_word_of_a_yaml_file_is_text_and_every_index_a_number(text, labels, write):
    assert load_labels(write({"m.yaml": text}) / "m.yaml").labels == labels


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a, 7]", "the label at index 1 must be a string, not 7"),
        ("[a, 0.5]", "the label at index 1 must be a string, not 0.5"),
        ("- a\n-\n", "the label at index 1 must be a string, not None"),
        ("label2id: {a: yes}", "'yes' where an index should be"),
        ("!thing a", "not YAML"),
        ("label2id: {a: 1" + "0" * 5000 + "}", "digits"),
        ("[" * 500, "nested too deeply"),
    ],
)
def test_what_a_yaml_file_may_not_say(text, reason, write):
    with pytest.raises(CheckpointError, match=r"m\.yml: ") as caught:
        load_labels(write({"m.yml": text}) / "m.yml")
    assert reason in caught.value.message


def of_config(*names):
    return labels_of_config(
        Document(Path("config.json"), {"id2label": {str(at): name for at, name in enumerate(names)}})
    )


def test_a_placeholder_is_the_name_that_says_its_own_index():
    assert of_config("LABEL_0", "LABEL_1") is None
    assert of_config("LABEL_3", "LABEL_2", "LABEL_1", "LABEL_0") == ("LABEL_3", "LABEL_2", "LABEL_1", "LABEL_0")
    assert of_config("LABEL_0", "spam") == ("LABEL_0", "spam")
    assert of_config("LABEL_00", "LABEL_01") == ("LABEL_00", "LABEL_01")


def test_a_configuration_may_not_use_the_reserved_name():
    with pytest.raises(CheckpointError, match=r"config\.json: the label at index 1 is 'classification_error'"):
        of_config("a", "classification_error")


def entry(labels=None):
    return CatalogEntry(name="m", labels=labels)


def test_labels_are_stated_in_the_entry_or_not_at_all(tmp_path):
    assert stated_labels(entry(("x", "y")), tmp_path) == ("x", "y")
    assert stated_labels(entry(), tmp_path) is None


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (("a", "classification_error"), "index 1 is 'classification_error', a name reserved"),
        (("a", "b", "a"), "'a' is at index 0 and at index 2"),
        (("a", " "), "index 1 is empty"),
        ((), "no label is named"),
    ],
)
def test_an_entry_may_name_no_more_than_a_file_may(labels, reason, tmp_path):
    with pytest.raises(CheckpointError, match=reason):
        stated_labels(entry(labels), tmp_path)


def test_a_label_file_is_looked_for_beside_the_configuration_and_then_in_the_model(write):
    model = write({"m.json": ["model", "files"]}, "model")
    conf = write({"other.json": ["x", "y"]}, "conf")

    assert stated_labels(entry("m.json"), model, conf) == ("model", "files")
    write({"m.json": ["conf", "files"]}, "conf")
    assert stated_labels(entry("m.json"), model, conf) == ("conf", "files")
    with pytest.raises(CheckpointError, match=r"no label file 'none.json'; looked at .*conf.none.json and .*model"):
        stated_labels(entry("none.json"), model, conf)
