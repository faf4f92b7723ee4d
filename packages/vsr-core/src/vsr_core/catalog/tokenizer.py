"""Whether an encoder can read a text: its tokenizer files, as far as a glance tells, and its limit on tokens."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import CheckpointError
from ..taxonomy import Artifact, Capability
from .documents import read_json

__all__ = ["special_tokens", "token_problems", "tokenizer_problem"]

_ENCODERS: Final = frozenset(
    {
        Capability.EMBEDDING,
        Capability.SEQUENCE_CLASSIFICATION,
        Capability.PAIR_CLASSIFICATION,
        Capability.TOKEN_CLASSIFICATION,
        Capability.RERANKING,
    }
)
_PAIRS: Final = frozenset({Capability.PAIR_CLASSIFICATION, Capability.RERANKING})

_WITH_FILES: Final = frozenset(
    {Artifact.FULL, Artifact.MERGED_LORA, Artifact.ONNX, Artifact.OPENVINO_IR, Artifact.QUANTIZED}
)
"""The forms of weights that have the tokenizer beside them; a GGUF file has it inside."""

_FEW: Final = 16
"""A limit up to which it is worth asking how many tokens are special; no encoder has nearly so many."""

_WORD_PIECE: Final = (2, 3)
"""``[CLS] a [SEP]`` and ``[CLS] a [SEP] b [SEP]``, which is what is built from ``vocab.txt``."""

_PROCESSORS: Final[Mapping[str, tuple[int, int]]] = {
    "ByteLevel": (0, 0),
    "BertProcessing": (2, 3),
    "RobertaProcessing": (2, 4),
}


def token_problems(
    folder: Path, form: Artifact | None, *, capabilities: Collection[Capability], max_tokens: int | None
) -> list[str]:
    """Why an encoder could read no text, each as ``key: what is wrong; the way out``; nothing for other models.

    :param form: the form of the weights.
    :param max_tokens: the limit in force, special tokens included.
    """
    if _ENCODERS.isdisjoint(capabilities) or form not in _WITH_FILES:
        return []
    missing = tokenizer_problem(folder)
    problems = [f"tokenizer: {missing}"] if missing is not None else []
    if max_tokens is None:
        return [*problems, "max_tokens: no file states how many tokens the model takes; state 'max_tokens'"]
    special = special_tokens(folder) if missing is None and max_tokens <= _FEW else None
    if special is not None:
        needed = special[0] if _PAIRS.isdisjoint(capabilities) else max(special)
        if max_tokens <= needed:
            problems.append(f"max_tokens: {max_tokens} leaves no room beside {needed} special tokens; raise it")
    return problems


def tokenizer_problem(folder: Path) -> str | None:
    """Why no tokenizer can be made of the files of a folder, as far as a glance tells; None where it may be possible.

    It takes ``tokenizer.json``, or for WordPiece ``vocab.txt`` with ``tokenizer_config.json``.
    """
    whole, vocabulary = folder / "tokenizer.json", folder / "vocab.txt"
    if whole.is_file():
        return None if _looks_whole(whole) else f"{whole.name} is no whole JSON object; fetch the file again"
    if not (vocabulary.is_file() and (folder / "tokenizer_config.json").is_file()):
        return (
            "tokenizer.json is missing, and there is no vocab.txt with a tokenizer_config.json; "
            "save the model's fast tokenizer into its folder"
        )
    return None if vocabulary.stat().st_size else f"{vocabulary.name} is empty; fetch the file again"


def special_tokens(folder: Path) -> tuple[int, int] | None:
    """How many special tokens are put around a text, and around a pair; None where the files do not tell.

    Reads ``tokenizer.json`` whole, which may be large.
    """
    whole = folder / "tokenizer.json"
    if not whole.is_file():
        return _WORD_PIECE
    try:
        content = read_json(whole)
    except CheckpointError:
        return None
    return _added_by(content.get("post_processor")) if isinstance(content, Mapping) else None


def _added_by(processor: Any) -> tuple[int, int] | None:
    if processor is None:
        return 0, 0
    if not isinstance(processor, Mapping):
        return None
    kind = processor.get("type")
    if kind == "Sequence":
        steps = [_added_by(step) for step in _pieces(processor, "processors")]
        known = [step for step in steps if step is not None]
        return (sum(one for one, _ in known), sum(two for _, two in known)) if len(known) == len(steps) else None
    if kind == "TemplateProcessing":
        one, two = (
            sum("SpecialToken" in piece for piece in _pieces(processor, template) if isinstance(piece, Mapping))
            for template in ("single", "pair")
        )
        return one, two
    return _PROCESSORS.get(str(kind))


def _pieces(processor: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = processor.get(key)
    return found if isinstance(found, list) else ()


def _looks_whole(file: Path) -> bool:
    """Whether a file begins and ends as a JSON object does; a pointer to a file elsewhere does not."""
    with file.open("rb") as opened:
        start = opened.read(64)
        opened.seek(max(0, file.stat().st_size - 64))
        end = opened.read()
    return start.lstrip()[:1] == b"{" and end.rstrip()[-1:] == b"}"
