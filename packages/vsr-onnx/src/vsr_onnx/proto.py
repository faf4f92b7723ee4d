"""The wire format of protocol buffers, as far as reading and re-assembling an ONNX file needs it.

https://protobuf.dev/programming-guides/encoding/. What is not looked at is copied byte for byte, so nothing that a
newer exporter writes is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Field", "encode_bytes", "encode_int", "read_fields"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTH = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT = 10


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    :param payload: the content of a field of bytes, text or a message; empty for a number.
    :param number: the value of an integer field, unsigned; 0 for any other.
    :param raw: the field as it stands in the message, with its tag.
    """

    tag: int
    payload: memoryview
    number: int
    raw: memoryview

    @property
    def text(self) -> str:
        """The content as text.

        :raises ValueError: it is not UTF-8.
        """
        return str(self.payload, "utf-8")


def read_fields(message: memoryview) -> Iterator[Field]:
    """The fields of a message in the order in which they stand there.

    :raises ValueError: it is no message, or is cut short.
    """
    at, end = 0, len(message)
    while at < end:
        start = at
        key, at = _varint(message, at)
        tag, kind = key >> 3, key & 7
        number, payload = 0, message[:0]
        if kind == _VARINT:
            number, at = _varint(message, at)
        elif kind == _BYTES:
            size, at = _varint(message, at)
            payload, at = message[at : at + size], at + size
        elif kind in _WIDTH:
            payload, at = message[at : at + _WIDTH[kind]], at + _WIDTH[kind]
        else:
            raise ValueError(f"there is no wire type {kind}")
        if at > end or tag == 0:
            raise ValueError("the message is cut short or damaged")
        yield Field(tag, payload, number, message[start:at])


def encode_bytes(tag: int, content: bytes | str) -> bytes:
    """A field of bytes, text or a message."""
    data = content.encode() if isinstance(content, str) else content
    return _encode_varint(tag << 3 | _BYTES) + _encode_varint(len(data)) + data


def encode_int(tag: int, value: int) -> bytes:
    """A field of a number that is not negative."""
    return _encode_varint(tag << 3 | _VARINT) + _encode_varint(value)


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """The number that begins at a place, and the place after it."""
    value = 0
    for position, byte in enumerate(message[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value, at + position + 1
    raise ValueError("a number is cut short")


def _encode_varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
