"""Texts into token ids: truncation is a stated policy, and no state is shared between callers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from tokenizers import Encoding, Tokenizer

from ..contract import Truncation
from ..errors import CheckpointError, InputTooLongError, InvalidInputError
from .engine import IntArray
from .places import token_places
from .tokenizer_files import read_tokenizer

__all__ = ["CHARACTERS_PER_TOKEN", "MIN_CHARACTER_CAP", "EncodedText", "TextTokenizer", "character_cap"]

T = TypeVar("T")
Input = TypeVar("Input", str, tuple[str, str])

CHARACTERS_PER_TOKEN = 250
"""How many characters of a text are read for each token that is allowed."""

MIN_CHARACTER_CAP = 4096
"""The least number of characters that is read of a text, however few tokens are allowed."""

_CHUNK_TEXTS = 256
_CHUNK_CHARACTERS = 1 << 20
_PROBES = ("a", "0", ".", "the", "\u4e00")


@dataclass(frozen=True, slots=True, eq=False)
class EncodedText:
    """One text as the model reads it.

    :param ids: token ids with the special tokens, int32 ``[tokens]``; ``type_ids`` likewise.
    :param prompt_tokens: how many leading tokens belong to the prompt, leading special tokens included; 0 without one.
    :param total_tokens: what the whole text would have taken; None where the character cap left a part unread.
    :param offsets: the place of each token in the text as given, int32 ``[tokens, 2]`` of (start, end) code points,
        (0, 0) for special tokens; None unless asked for.
    :param words: the number of the word each token belongs to, int32 ``[tokens]``, -1 for special tokens; likewise.
    """

    ids: IntArray
    type_ids: IntArray
    prompt_tokens: int
    total_tokens: int | None
    truncated: bool
    offsets: IntArray | None = None
    words: IntArray | None = None


@dataclass(frozen=True, slots=True)
class _Layout:
    """How many special tokens stand before and after a text, and whether every type id is zero."""

    prefix: int
    suffix: int
    zero_types: bool


@dataclass(frozen=True, slots=True)
class _Limit:
    max_tokens: int
    truncate: Truncation


def character_cap(max_tokens: int) -> int:
    """How many characters of a text are read at most, so that no text takes time without bound."""
    return max(MIN_CHARACTER_CAP, CHARACTERS_PER_TOKEN * max_tokens)


class TextTokenizer:
    """Tokenises for one model, from any number of threads at once (it releases the GIL).

    Special tokens survive truncation. An empty or blank text is legal and gives the special tokens alone.

    :param tokenizer: an object of the caller's own that nobody else changes; its truncation and padding go off.
    :param vocab_size: rows of the model's token embedding. Ids beyond it are refused: at once where the vocabulary
        itself has them, with the text where only an added token has.
    :param lowercase: lowercase prompts and texts first (``do_lower_case`` of a sentence-transformers checkpoint).
    :raises CheckpointError: the tokenizer does not work, or does not fit the model.
    """

    def __init__(self, tokenizer: Tokenizer, *, vocab_size: int | None = None, lowercase: bool = False) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._lowercase = lowercase
        self._layout = _probe(tokenizer)
        self._unsafe_from = _check_vocabulary(tokenizer, vocab_size)

    @classmethod
    def from_folder(cls, folder: Path, *, vocab_size: int | None = None, lowercase: bool = False) -> TextTokenizer:
        """Read the tokenizer of the checkpoint in ``folder``.

        :raises CheckpointError: its files are missing or damaged, or do not fit the model.
        """
        tokenizer = read_tokenizer(folder)
        try:
            return cls(tokenizer, vocab_size=vocab_size, lowercase=lowercase)
        except CheckpointError as error:
            raise CheckpointError(f"{folder}: {error.message}") from None

    @property
    def special_tokens(self) -> int:
        """How many special tokens are added to a text."""
        return self._layout.prefix + self._layout.suffix

    @property
    def frame(self) -> tuple[int, int]:
        """How many of them stand before the text, and how many after it."""
        return self._layout.prefix, self._layout.suffix

    @property
    def pair_special_tokens(self) -> int:
        """How many special tokens are added to a pair of texts."""
        return int(self._tokenizer.num_special_tokens_to_add(is_pair=True))

    def encode(
        self, texts: Sequence[str], *, max_tokens: int, prompt: str = "", truncate: Truncation = "end"
    ) -> list[EncodedText]:
        """Tokenise each text with the prompt before it, into at most ``max_tokens`` tokens, special ones included.

        ``start`` cuts the start of the text and keeps the prompt.

        :raises InputTooLongError: with ``truncate="error"``, a text over the limit in characters or tokens.
        :raises InvalidInputError: a text that gives no token at all, or ``truncate="window"``.
        """
        limit = self._limit(max_tokens, truncate)
        prompt_tokens = self._prompt_tokens(prompt) if prompt else 0
        inputs = [prompt + text for text in texts] if prompt else list(texts)
        dropped = _apply_cap(inputs, limit, keep=len(prompt))
        if self._lowercase:
            inputs = [text.lower() for text in inputs]
        encodings = self._run(inputs)
        return [
            self._finish(encoding, limit, index, prompt_tokens=prompt_tokens, capped=index in dropped)
            for index, encoding in enumerate(encodings)
        ]

    def encode_with_offsets(
        self, texts: Sequence[str], *, max_tokens: int, truncate: Truncation = "end"
    ) -> list[EncodedText]:
        """As :meth:`encode` without a prompt, with the place and the word of every token."""
        limit = self._limit(max_tokens, truncate)
        inputs = list(texts)
        dropped = _apply_cap(inputs, limit, keep=0)
        read = [text.lower() for text in inputs] if self._lowercase else inputs
        encoded = []
        encodings = (encoding for chunk in _chunks(read) for encoding in self._tokenizer.encode_batch(chunk))
        for index, encoding in enumerate(encodings):
            plain = self._finish(encoding, limit, index, prompt_tokens=0, capped=index in dropped)
            head, tail = self._kept(len(encoding), limit, 0)
            places = token_places(encoding, inputs[index], read[index], shift=dropped.get(index, 0))
            words = [-1 if word is None else word for word in encoding.word_ids]
            offsets = np.array(_cut(places, head, tail), np.int32)
            encoded.append(replace(plain, offsets=offsets, words=np.array(_cut(words, head, tail), np.int32)))
        return encoded

    def encode_whole_pairs(self, pairs: Sequence[tuple[str, str]]) -> Iterator[Encoding]:
        """The tokenizer's own encoding of each pair, special tokens and all, with nothing cut."""
        if self._lowercase:
            pairs = [(first.lower(), second.lower()) for first, second in pairs]
        # without a post-processor the fast form gives both texts the same type id
        encode = self._tokenizer.encode_batch_fast if self._tokenizer.post_processor else self._tokenizer.encode_batch
        for chunk in _chunks(pairs):
            yield from encode(chunk)

    def as_ids(self, ids: Sequence[int], where: str) -> IntArray:
        """Token ids as an array, where the model has an embedding for each.

        :raises InvalidInputError: it has not; the message names ``where`` the ids are from.
        """
        array = np.array(ids, np.int32)
        if self._unsafe_from is not None and int(array.max()) >= self._unsafe_from:
            raise InvalidInputError(f"{where} holds a special token that the model has no embedding for", param=where)
        return array

    def _limit(self, max_tokens: int, truncate: Truncation) -> _Limit:
        if truncate not in ("error", "end", "start"):
            raise InvalidInputError(
                f"truncate={truncate!r} does not give one sequence per text: use 'error', 'end' or 'start'",
                param="truncate",
            )
        if max_tokens <= self.special_tokens:
            raise InvalidInputError(
                f"a limit of {max_tokens} tokens leaves no room beside {self.special_tokens} special tokens",
                param="max_tokens",
            )
        return _Limit(max_tokens, truncate)

    def _prompt_tokens(self, prompt: str) -> int:
        """Tokens of the prompt by itself, less the special tokens after it: the count sentence-transformers uses."""
        text = prompt.lower() if self._lowercase else prompt
        return len(self._tokenizer.encode(text)) - self._layout.suffix

    def _run(self, texts: list[str]) -> Iterator[Encoding]:
        if len(texts) == 1:
            yield self._tokenizer.encode(texts[0])
            return
        for chunk in _chunks(texts):
            yield from self._tokenizer.encode_batch_fast(chunk)

    def _kept(self, count: int, limit: _Limit, prompt_tokens: int) -> tuple[int, int]:
        """How many tokens to keep from the front and from the back of ``count``."""
        if count <= limit.max_tokens:
            return count, 0
        room = limit.max_tokens - self._layout.suffix
        head = room if limit.truncate == "end" else min(max(self._layout.prefix, prompt_tokens), room)
        return head, limit.max_tokens - head

    def _finish(
        self, encoding: Encoding, limit: _Limit, index: int, *, prompt_tokens: int, capped: bool
    ) -> EncodedText:
        ids = encoding.ids
        total = len(ids)
        if total == 0:
            raise InvalidInputError(
                f"texts[{index}] gives no token, so there is nothing to run", param=f"texts[{index}]"
            )
        if over := total > limit.max_tokens:
            if limit.truncate == "error":
                raise _too_long(index, limit.max_tokens, total, "tokens")
            head, tail = self._kept(total, limit, prompt_tokens)
            ids = _cut(ids, head, tail)
        array = self.as_ids(ids, f"texts[{index}]")
        if self._layout.zero_types:
            types = np.zeros(len(ids), np.int32)
        else:
            types = np.array(_cut(encoding.type_ids, head, tail) if over else encoding.type_ids, np.int32)
        return EncodedText(
            array, types, min(prompt_tokens, len(ids)), None if capped else total, truncated=over or capped
        )


def _too_long(index: int, limit: int, actual: int, unit: str) -> InputTooLongError:
    return InputTooLongError(
        f"texts[{index}] has {actual} {unit}, the limit is {limit}: shorten it, or ask for truncate='end' or 'start', or"
        " where labels are asked for 'window'",
        limit=limit,
        actual=actual,
        unit=unit,
        param=f"texts[{index}]",
    )


def _apply_cap(inputs: list[str], limit: _Limit, *, keep: int) -> Mapping[int, int]:
    """Cut texts over the character cap in place; gives how many characters went missing at the start of each.

    :param keep: leading characters, those of the prompt, that ``start`` leaves alone.
    """
    cap = character_cap(limit.max_tokens)
    dropped: dict[int, int] = {}
    for index, text in enumerate(inputs):
        if len(text) <= cap:
            continue
        if limit.truncate == "error":
            raise _too_long(index, cap, len(text), "characters")
        dropped[index] = 0
        if limit.truncate == "end":
            inputs[index] = text[:cap]
        else:
            kept = min(keep, cap)
            inputs[index] = text[:kept] + text[len(text) - (cap - kept) :]
            dropped[index] = len(text) - cap
    return dropped


def _cut(values: list[T], head: int, tail: int) -> list[T]:
    return values[:head] + values[len(values) - tail :] if tail else values[:head]


def _chunks(inputs: Sequence[Input]) -> Iterator[list[Input]]:
    """Split into runs of bounded count and size, so that one call never holds every encoding at once."""
    chunk: list[Input] = []
    characters = 0
    for each in inputs:
        length = len(each) if isinstance(each, str) else len(each[0]) + len(each[1])
        if chunk and (len(chunk) == _CHUNK_TEXTS or characters + length > _CHUNK_CHARACTERS):
            yield chunk
            chunk, characters = [], 0
        chunk.append(each)
        characters += length
    if chunk:
        yield chunk


def _probe(tokenizer: Tokenizer) -> _Layout:
    """Learn from a short text which special tokens are put around it."""
    for text in _PROBES:
        try:
            encoding = tokenizer.encode(text)
        except Exception as error:
            raise CheckpointError(
                f"the tokenizer fails on the text {text!r}: {error}; its files are damaged or incomplete"
            ) from error
        mask = encoding.special_tokens_mask
        if 0 in mask:
            return _Layout(mask.index(0), mask[::-1].index(0), not any(encoding.type_ids))
    raise CheckpointError("the tokenizer gives no token for plain text; its files are damaged or incomplete")


def _check_vocabulary(tokenizer: Tokenizer, vocab_size: int | None) -> int | None:
    """Compare with the model's embedding; gives the first id a text must not hold, where added tokens go beyond it."""
    if vocab_size is None:
        return None
    highest = max(tokenizer.get_vocab(with_added_tokens=False).values(), default=-1)
    if highest >= vocab_size:
        raise CheckpointError(
            f"the tokenizer knows token ids up to {highest}, the model has embeddings for {vocab_size}: the files belong"
            " to different models; put the model's own tokenizer files beside its weights"
        )
    added = max(tokenizer.get_added_tokens_decoder(), default=-1)
    return vocab_size if added >= vocab_size else None
