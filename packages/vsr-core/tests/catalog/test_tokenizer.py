from __future__ import annotations

import pytest
from vsr_core.catalog.tokenizer import special_tokens, tokenizer_problem
from vsr_core.local.tokenizer_files import read_tokenizer
from vsr_core.testing.tokenizer_files import write_tokenizer

WORD_PIECE = {"vocab.txt": "[UNK]\n[CLS]\n[SEP]\na\n", "tokenizer_config.json": {}}


@pytest.mark.parametrize(
    "files",
    [{"tokenizer.json": {"model": {}}}, {"tokenizer.json": '\n {"model": {}}\n', "vocab.txt": ""}, WORD_PIECE],
)
def test_a_folder_with_a_tokenizer_has_no_problem(files, write):
    assert tokenizer_problem(write(files)) is None


@pytest.mark.parametrize(
    "files", [{"config.json": {}}, {"vocab.txt": "a\n"}, {"tokenizer_config.json": {}}, {"tokenizer.model": b"1"}]
)
def test_missing_files_are_named_with_the_way_out(files, write):
    problem = tokenizer_problem(write(files))

    assert problem is not None
    assert problem.startswith("tokenizer.json is missing, and there is no vocab.txt")
    assert "save the model's fast tokenizer" in problem


@pytest.mark.parametrize(
    "content",
    ["", " ", '{"model": {"type": "WordPiece", "vo', "[]", "version https://git-lfs.github.com/spec/v1\nsize 9\n"],
)
def test_a_file_that_is_empty_or_cut_off_is_a_problem(content, write):
    problem = tokenizer_problem(write({**WORD_PIECE, "tokenizer.json": content}))

    assert problem == "tokenizer.json is no whole JSON object; fetch the file again"


def test_an_empty_vocabulary_is_a_problem(write):
    assert tokenizer_problem(write({**WORD_PIECE, "vocab.txt": ""})) == "vocab.txt is empty; fetch the file again"


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm_roberta", "modernbert", "deberta", "gemma"])
def test_special_tokens_are_counted_as_the_tokenizer_adds_them(kind, tmp_path):
    write_tokenizer(tmp_path, kind, max_tokens=64)
    tokenizer = read_tokenizer(tmp_path)

    assert special_tokens(tmp_path) == tuple(map(tokenizer.num_special_tokens_to_add, (False, True)))


def test_special_tokens_of_a_vocabulary_are_those_of_word_piece(write):
    folder = write(WORD_PIECE)

    assert special_tokens(folder) == tuple(map(read_tokenizer(folder).num_special_tokens_to_add, (False, True)))


@pytest.mark.parametrize(
    ("processor", "count"),
    [
        (None, (0, 0)),
        ({"type": "RobertaProcessing"}, (2, 4)),
        ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "BertProcessing"}]}, (2, 3)),
        ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "New"}]}, None),
        ({"type": "New"}, None),
        ([], None),
        ({"type": "Sequence", "processors": 5}, (0, 0)),
        ({"type": "TemplateProcessing", "single": 5, "pair": [3]}, (0, 0)),
    ],
)
def test_processors_that_are_not_known_are_not_guessed(processor, count, write):
    assert special_tokens(write({"tokenizer.json": {"post_processor": processor}})) == count


def test_a_file_that_is_no_json_tells_nothing(write):
    assert special_tokens(write({"tokenizer.json": "{nothing}"})) is None
