"""Chat messages and their parts, one shape for every provider and local model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

__all__ = [
    "AudioPart",
    "ImagePart",
    "Message",
    "Part",
    "ReasoningPart",
    "TextPart",
    "ToolCall",
    "ToolSpec",
]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Plain text."""

    tag: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    """An image: base64 ``data`` with its media type, or a ``url``; exactly one of them."""

    tag: ClassVar[str] = "image"
    data: str | None = None
    url: str | None = None
    media_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioPart:
    """Audio: base64 ``data`` with its media type."""

    tag: ClassVar[str] = "audio"
    data: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPart:
    """Reasoning a model returned; ``signature`` is opaque to everyone but the dialect that made it."""

    tag: ClassVar[str] = "reasoning"
    text: str
    signature: str | None = None
    dialect: str | None = None


Part = TextPart | ImagePart | AudioPart | ReasoningPart


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model asks for a tool; ``arguments`` is the JSON text the model wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool on offer; ``parameters`` is a JSON Schema object."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation. ``tool_call_id`` says which call a tool message answers."""

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
