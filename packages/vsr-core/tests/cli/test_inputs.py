import pytest
from vsr_core.cli.inputs import read_lines
from vsr_core.errors import InvalidInputError


def texts_of(ran):
    return ran.body["count"]


def test_arguments_are_texts(vsr, mini):
    assert texts_of(vsr("embed", "a", "b", "--json")) == 2


def test_stdin_is_read_where_there_are_no_arguments(vsr, mini):
    assert texts_of(vsr("embed", "--json", stdin=b"one\ntwo\nthree\n")) == 3


def test_stdin_is_left_alone_where_there_are_arguments(vsr, mini):
    assert texts_of(vsr("embed", "a", "--json", stdin=b"one\ntwo\n")) == 1


def test_a_file_adds_its_lines_to_the_arguments(vsr, mini, tmp_path):
    (tmp_path / "texts").write_text("one\ntwo\n")
    assert texts_of(vsr("embed", "a", "--file", "texts", "--json")) == 3


def test_a_dash_is_stdin(vsr, mini):
    assert texts_of(vsr("embed", "a", "--file", "-", "--json", stdin=b"one\n")) == 2


def test_no_text_at_all_is_wrong_usage(vsr, mini):
    ran = vsr("embed")
    assert ran.code == 2
    assert "TEXT" in ran.err


def test_a_missing_file_is_a_message(vsr, mini):
    ran = vsr("embed", "--file", "gone.txt", "--json")
    assert ran.code == 1
    assert ran.error["param"] == "file"
    assert "'gone.txt' cannot be read" in ran.error["message"]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        ("a\u2028b\x0cc\n".encode(), ["a\u2028b\x0cc"]),
    ],
    ids=["empty", "one blank line", "a blank line between", "line ends of Windows", "byte order mark", "other breaks"],
)
def test_every_line_is_one_text(tmp_path, data, lines):
    (tmp_path / "texts").write_bytes(data)
    assert read_lines("texts") == lines


def test_a_file_that_is_not_utf_8_is_refused_with_the_line(tmp_path):
    (tmp_path / "texts").write_bytes(b"fine\nna\xefve\n")
    with pytest.raises(InvalidInputError, match="line 2: this is not UTF-8"):
        read_lines("texts")
