from __future__ import annotations

import json

import pytest
from vsr_core.errors import CheckpointError
from vsr_core.local import TextTokenizer

VOCAB = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "Cat"]) + "\n"


@pytest.fixture
def bert_folder(tmp_path):
    (tmp_path / "vocab.txt").write_text(VOCAB, encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}), encoding="utf-8")
    return tmp_path


def ids(folder, text):
    return TextTokenizer.from_folder(folder).encode([text], max_tokens=16)[0].ids.tolist()


def test_the_fast_tokenizer_file_is_read(toy_folder):
    assert ids(toy_folder, "") == [2, 3]


def test_a_bert_vocabulary_alone_makes_a_tokenizer(bert_folder):
    assert ids(bert_folder, "The Cats dog [MASK]") == [2, 5, 6, 7, 1, 4, 3]


def test_the_configuration_decides_about_case(bert_folder):
    (bert_folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}), encoding="utf-8")
    assert ids(bert_folder, "Cat") == [2, 8, 3]


def test_special_tokens_may_be_objects(bert_folder):
    config = {"cls_token": {"content": "[CLS]", "lstrip": False}, "tokenizer_class": "BertTokenizerFast"}
    (bert_folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert ids(bert_folder, "") == [2, 3]


def test_a_vocabulary_with_windows_line_ends_is_the_same(bert_folder):
    (bert_folder / "vocab.txt").write_bytes(VOCAB.replace("\n", "\r\n").encode())
    assert ids(bert_folder, "cats") == [2, 6, 7, 3]


def test_no_tokenizer_at_all_names_the_file_and_the_way_out(tmp_path):
    with pytest.raises(CheckpointError, match=r"tokenizer\.json' is missing.*save the model's fast tokenizer"):
        TextTokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\x00\xff", b'{"version": "1.0"}'])
def test_a_damaged_tokenizer_file_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json' is no readable tokenizer"):
        TextTokenizer.from_folder(tmp_path)


def test_a_vocabulary_without_the_special_tokens_is_refused(bert_folder):
    (bert_folder / "vocab.txt").write_text("the\ncat\n[UNK]\n[CLS]\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"lacks the sep_token '\[SEP\]'"):
        TextTokenizer.from_folder(bert_folder)


def test_a_tokenizer_class_that_a_vocabulary_does_not_describe_is_refused(bert_folder):
    (bert_folder / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer"}', encoding="utf-8")
    with pytest.raises(CheckpointError, match="LlamaTokenizer"):
        TextTokenizer.from_folder(bert_folder)


@pytest.mark.parametrize("content", ["[]", "{", ""])
def test_a_damaged_configuration_is_named(bert_folder, content):
    (bert_folder / "tokenizer_config.json").write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"tokenizer_config\.json: "):
        TextTokenizer.from_folder(bert_folder)


def test_a_vocabulary_that_is_no_text_is_named(bert_folder):
    (bert_folder / "vocab.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CheckpointError, match=r"vocab\.txt' cannot be read"):
        TextTokenizer.from_folder(bert_folder)
