"""Whether a plugin and this vsr-core were made for one another, by the version of the contract."""

from __future__ import annotations

import re

from ..contract import CONTRACT_VERSION
from ..errors import ConfigError
from .records import PluginSource

__all__ = ["contract_text", "incompatibility", "parse_contract"]


def parse_contract(text: object) -> tuple[int, int]:
    """Read a contract version.

    :raises ConfigError: unless it is ``<major>.<minor>``.
    """
    match = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", text, re.ASCII) if isinstance(text, str) else None
    if match is None:
        raise ConfigError(f"contract is {text!r}: state the version that is needed at least, such as '1.0'")
    return int(match[1]), int(match[2])


def incompatibility(needed: tuple[int, int], source: PluginSource) -> str | None:
    """Why the contract a plugin needs is not the one this vsr-core has, and who must move; None where it is."""
    major, minor = CONTRACT_VERSION
    if needed[0] == major and needed[1] <= minor:
        return None
    gap = f"needs contract {needed[0]}.{needed[1]}, this vsr-core has {contract_text()}"
    if needed > CONTRACT_VERSION:
        return f"{gap}: upgrade vsr-core"
    return f"{gap}: upgrade {source.distribution or source.name}"


def contract_text() -> str:
    """The contract version of this vsr-core, such as ``1.0``."""
    return ".".join(map(str, CONTRACT_VERSION))
