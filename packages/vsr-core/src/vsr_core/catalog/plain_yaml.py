"""YAML as it is read for names: every word is text, also those that YAML 1.1 takes for something else."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

__all__ = ["load_plain_yaml"]

_YAML: Final = "tag:yaml.org,2002:"


class _PlainLoader(yaml.SafeLoader):
    """Takes plain numbers for numbers, nothing at all for null, and any other scalar for text.

    ``no``, ``on``, ``true``, ``null``, ``2024-01-31``, ``12:30`` and ``010`` are text.
    """

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - PyYAML declares it so


_PlainLoader.add_implicit_resolver(_YAML + "int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z"), list("-+0123456789"))
_PlainLoader.add_implicit_resolver(
    _YAML + "float", re.compile(r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+]?[0-9]+)?\Z"), list("-+0123456789")
)
_PlainLoader.add_implicit_resolver(_YAML + "null", re.compile(r"\Z"), [""])
_PlainLoader.add_implicit_resolver(_YAML + "merge", re.compile(r"<<\Z"), ["<"])


def load_plain_yaml(text: str) -> Any:
    """The one document of a text, as plain values.

    :raises ValueError: not YAML, nested too deeply, or with a number too long to be read; one line says which.
    """
    try:
        return yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
