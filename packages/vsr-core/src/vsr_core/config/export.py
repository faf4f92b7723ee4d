"""The schema of a configuration as JSON Schema, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..contract import Preference
from .schema import ConfigDocument

__all__ = ["json_schema"]

_REFERENCE: Final = {"type": "string", "pattern": r"\$\{", "description": "A reference to an environment variable."}


_BOUNDS: Final = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a configuration file.

    Wherever a number, a truth value or one of several words is expected, ``${NAME}`` may stand for it.
    """
    schema = ConfigDocument.model_json_schema(mode="validation")
    open_to_references: dict[str, Any] = _referable(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "vsr configuration",
        "description": schema["description"],
    } | {key: value for key, value in open_to_references.items() if key not in ("title", "description")}


def _referable(node: Any) -> Any:
    if isinstance(node, list):
        return [_referable(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    node = _standard(node)
    if "enum" in node or node.get("type") in ("integer", "number", "boolean"):
        outer = {key: node[key] for key in ("title", "description", "default") if key in node}
        inner = {key: value for key, value in node.items() if key not in outer}
        return outer | {"anyOf": [inner, dict(_REFERENCE)]}
    return {key: value if key in ("propertyNames", "default") else _referable(value) for key, value in node.items()}


def _standard(node: Mapping[str, Any]) -> dict[str, Any]:
    """What pydantic says of values it reads through a function, in the words of JSON Schema."""
    standard = {_BOUNDS.get(key, key): value for key, value in node.items()}
    if isinstance(node.get("default"), Mapping) and set(node["default"]) == {"mode", "value"}:
        standard["default"] = str(Preference(**node["default"]))
    return standard
