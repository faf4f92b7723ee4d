from vsr_core.cli.models import choice_text
from vsr_core.contract import Choice


def test_models_are_listed_without_being_loaded(vsr, mini):
    ran = vsr("models", "--json")
    (model,) = ran.body["models"]
    assert model["backend_id"] == "toy:mini"
    assert model["state"] == "not_loaded"
    assert model["native_dimensions"] == 32


def test_the_table_has_id_family_capabilities_and_source(vsr, mini):
    line = next(line for line in vsr("models").out.splitlines() if line.startswith("toy:mini"))
    assert line.split() == ["toy:mini", "bert", "full", "embedding", "32", "64", "not_loaded", "mini"]


def test_a_model_whose_files_are_gone_is_listed_with_the_reason(vsr, toy, write):
    write("catalog:\n  gone: {source: nowhere, backends: [toy]}\n")
    ran = vsr("models")
    assert ran.code == 0
    assert "toy:gone: " in ran.out
    assert "'nowhere'" in ran.out


def test_an_empty_catalog_says_what_to_do(vsr, toy):
    assert "`catalog`" in vsr("models").out


def test_loading_says_device_and_precision_as_asked_and_as_they_are(vsr, mini):
    ran = vsr("load", "toy:mini")
    assert ran.code == 0
    assert "toy:mini" in ran.out
    assert "cpu (asked: auto)" in ran.out
    assert "float32 (asked: auto)" in ran.out


def test_loading_prints_the_whole_info_as_json(vsr, mini):
    model = vsr("load", "mini", "--json").body["model"]
    assert model["state"] == "ready"
    assert model["load_seconds"] > 0
    assert model["dtype"] == {"requested": "auto", "actual": "float32", "reason": None}


def test_classifiers_are_listed_and_loaded_with_their_labels(vsr, kinds):
    line = next(line for line in vsr("models").out.splitlines() if line.startswith("toy:labels"))
    assert line.split()[:5] == ["toy:labels", "bert", "full", "sequence_classification", "-"]
    assert "toy:labels" in vsr("status").out
    out = vsr("load", "labels").out
    assert "business, law, health, other" in out
    assert "dimensions" not in out


def test_loading_what_is_not_there_is_a_message(vsr, toy, write):
    write("catalog:\n  gone: {source: nowhere, backends: [toy]}\n")
    ran = vsr("load", "gone")
    assert ran.code == 1
    assert "'nowhere'" in ran.err


def test_a_choice_is_told_with_what_was_asked_only_where_it_came_out_otherwise():
    assert choice_text(None) is None
    assert choice_text(Choice(requested="cpu", actual="cpu")) == "cpu"
    assert choice_text(Choice(requested="auto", actual="cpu")) == "cpu (asked: auto)"
    assert choice_text(Choice(requested="auto", reason="no GPU")) == "not known (asked: auto): no GPU"
