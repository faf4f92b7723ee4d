"""Reading files: YAML and JSON, with lines; what is broken, dangerous or too large is refused."""

from __future__ import annotations

import pytest
from vsr_core.config import load_config
from vsr_core.errors import ConfigError


def test_a_missing_file_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"'absent\.yaml' does not exist"):
        load_config("absent.yaml")


def test_a_folder_is_no_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    with pytest.raises(ConfigError, match="'conf' is a folder"):
        load_config("conf")


def test_a_name_no_file_can_have_is_refused():
    with pytest.raises(ConfigError, match="cannot be read: not a file name"):
        load_config("a\0b")


def test_a_file_that_is_not_utf8_is_refused_with_the_byte(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vsr.yaml").write_bytes(b"catalog: \xff\xfe\n")
    with pytest.raises(ConfigError, match=r"'vsr\.yaml' is not UTF-8 at byte 9"):
        load_config("vsr.yaml")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    (tmp_path / "vsr.yaml").write_bytes(b"\xef\xbb\xbfserver: {port: 9000}\n")
    assert load_config(tmp_path / "vsr.yaml").server.port == 9000


def test_a_file_larger_than_a_mebibyte_is_refused(write):
    with pytest.raises(ConfigError, match="larger than 1024 KiB"):
        load_config(write("# " + "x" * 1024 * 1024))


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "null\n"])
def test_an_empty_file_is_an_empty_configuration(load, text):
    assert dict(load(text).catalog) == {}


@pytest.mark.parametrize(("text", "shape"), [("[a, b]", "list"), ("words", "text"), ("17", "number")])
def test_anything_but_a_mapping_is_refused(refused, text, shape):
    assert refused(text) == [f"vsr.yaml: the configuration is a {shape}, not a mapping"]


def test_a_syntax_error_has_its_line(refused):
    (problem,) = refused("server:\n  port: 1\n  host: [a\n")
    assert problem.startswith("vsr.yaml:4: not valid YAML: ")


def test_a_second_document_is_refused(refused):
    assert refused("server: {}\n---\nserver: {}\n") == [
        "vsr.yaml:2: not valid YAML: a second document begins here, and a configuration is one document"
    ]


@pytest.mark.parametrize("written", ["*canary123", "!canary123", "!x!canary123 y", "&a !canary123 {b: c}"])
def test_a_secret_that_looks_like_yaml_syntax_is_refused_without_being_shown(refused, written):
    (problem,) = refused(f"server:\n  host: {written}\n")
    assert problem.startswith("vsr.yaml:2: ")
    assert "quote text that begins with" in problem
    assert "canary123" not in problem


def test_a_syntax_error_does_not_quote_the_line_it_is_on(refused):
    (problem,) = refused('ledger:\n  url: "postgres://user:canary123@host\n')
    assert "canary123" not in problem


def test_a_key_given_twice_is_refused_with_both_lines(refused):
    assert refused("server:\n  port: 1\n  host: localhost\n  port: 2\n") == [
        "vsr.yaml:4: server.port: this key was already given on line 2"
    ]


def test_a_key_that_is_no_text_is_refused(refused):
    assert refused("catalog:\n  ? [a, b]\n  : {source: x}\n") == ["vsr.yaml:2: catalog: a key must be plain text"]


def test_a_key_that_is_no_text_hides_no_other_problem(refused):
    problems = refused("? [a, b]\n: 1\nserver: {prot: 1}\n")
    assert problems == [
        "vsr.yaml:1: a key must be plain text",
        "vsr.yaml:3: server.prot: unknown key; did you mean 'port'?",
    ]


def test_a_key_with_line_breaks_is_shown_on_one_line(refused):
    assert refused('"rolls\\nroles": {}') == ["vsr.yaml:1: rolls\\nroles: unknown key; did you mean 'roles'?"]


@pytest.mark.parametrize("name", ["vsr.yaml", "vsr.json"])
def test_a_number_of_more_digits_than_anybody_needs_is_refused(refused, name):
    (problem,) = refused('{"server": {"port": ' + "9" * 5000 + "}}", name=name)
    assert "number" in problem


def test_words_have_their_yaml_1_2_meaning(load):
    config = load(
        """
        catalog:
          nli:
            source: x
            labels: [no, yes, on, 2024-01-01, 12:30]
            normalize: true
        """
    )
    assert config.catalog["nli"].labels == ("no", "yes", "on", "2024-01-01", "12:30")
    assert config.catalog["nli"].normalize is True


def test_anchors_aliases_and_merge_keys_are_fine(load):
    config = load(
        """
        backends:
          torch: &shared {threads: 2, precision: "prefer:float16"}
          onnx: {<<: *shared, threads: 3}
          openvino: *shared
        """
    )
    assert [config.instances[name].threads for name in ("torch", "onnx", "openvino")] == [2, 3, 2]
    assert str(config.instances["onnx"].precision) == "prefer:float16"


def test_a_problem_below_an_alias_is_shown_at_the_key_and_the_line_it_was_written_on(refused):
    assert refused("backends:\n  torch: &shared\n    threads: 0\n  onnx: *shared\n") == [
        "vsr.yaml:3: backends.onnx.threads: this must be greater than or equal to 1",
        "vsr.yaml:3: backends.torch.threads: this must be greater than or equal to 1",
    ]


def test_aliases_that_multiply_are_refused(refused):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = refused("\n".join(lines))
    assert "more than 100,000 values" in problem


@pytest.mark.parametrize("text", ["server: &a [*a]", "server: &a {<<: *a}", "[" * 500, "{a: " * 500])
def test_what_is_nested_without_end_is_refused(refused, text):
    (problem,) = refused(text)
    assert "nested deeper than 64 levels" in problem


def test_json_has_lines_too(refused):
    text = '{\n\t"server": {\n\t\t"prot": 1,\n\t\t"host": "\\ud83d\\ude00"\n\t}\n}\n'
    assert refused(text, name="vsr.json") == ["vsr.json:3: server.prot: unknown key; did you mean 'port'?"]


def test_json_that_is_not_valid_has_its_line(refused):
    (problem,) = refused('{"server":\n {"port": }}', name="vsr.json")
    assert problem.startswith("vsr.json:2: not valid JSON: ")


def test_a_json_key_given_twice_is_refused(refused):
    assert refused('{"server": {"port": 1, "port": 2}}', name="vsr.json") == [
        "vsr.json:1: the key 'port' is given twice in one object"
    ]


def test_json_numbers_are_json_numbers(load):
    config = load('{"routing": {"limits": {"timeout": 1e2}}}', name="vsr.json")
    assert config.routing.limits.timeout == 100.0


def test_json_that_is_nested_without_end_is_refused(refused):
    (problem,) = refused('{"server": ' * 300 + "1" + "}" * 300, name="vsr.json")
    assert "nested deeper than 64 levels" in problem


def test_a_mapping_is_taken_as_it_is_and_not_shared():
    given = {"backends": {"work": {"adapter": "openai", "headers": {"x": "1"}}}}
    config = load_config(given, environ={})
    given["backends"]["work"]["headers"]["x"] = "2"
    assert config.instances["work"].options["headers"] == {"x": "1"}
    assert config.path is None


def test_a_mapping_may_hold_paths_and_tuples(tmp_path):
    config = load_config({"catalog": {"a": {"source": tmp_path, "labels": ("x", "y")}}}, environ={})
    assert config.catalog["a"].source == str(tmp_path)
    assert config.catalog["a"].labels == ("x", "y")


def test_a_key_of_a_mapping_must_be_text():
    with pytest.raises(ConfigError, match=r"config: catalog: the key 5 is no text"):
        load_config({"catalog": {5: {}}})


def test_a_mapping_that_contains_itself_is_refused():
    endless: dict[str, object] = {}
    endless["server"] = endless
    with pytest.raises(ConfigError, match="nested deeper than 64 levels"):
        load_config(endless)


def test_no_source_at_all_is_an_empty_configuration():
    assert load_config(None).roles.items() == ()
