"""Where in a text its tokens stand."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from tokenizers import Encoding

__all__ = ["token_places"]

_SPACES = frozenset({"\u2581", "\u0120"})
"""How SentencePiece and byte-level tokenizers write a space."""


def token_places(encoding: Encoding, text: str, read: str, *, shift: int) -> list[tuple[int, int]]:
    """Offsets of the tokens into the text as given, in code points; (0, 0) for the special tokens around it.

    They are the tokenizer's, set right where it is known to err: a space put before the text has no width, instead of
    that of the first character; and combining marks that were dropped, or composed with the letter before them,
    belong to the token of that letter.

    :param text: the text as given, less ``shift`` characters at its start; ``read`` is what the tokenizer saw of it.
    """
    origin: Sequence[int] = range(len(read) + 1)
    if len(read) != len(text):  # lowercasing can make one character two
        origin = [place for place, char in enumerate(text) for _ in char.lower()] + [len(text)]
    places: list[tuple[int, int]] = []
    upcoming = len(text)  # where the next token starts; read from the end for its sake
    tokens = zip(encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True)
    for token, (first, last), special in reversed(list(tokens)):
        if special:
            places.append((0, 0))
            continue
        start, end = origin[first], origin[last - 1] + 1 if last > first else origin[last]
        if token in _SPACES and start == upcoming and not text[start:end].isspace():
            end = start
        while start < end < upcoming and unicodedata.combining(text[end]):
            end += 1
        places.append((start + shift, end + shift))
        upcoming = start
    return places[::-1]
