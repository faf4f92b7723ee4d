"""Remote providers for vsr; applications use it through ``vsr_core`` and import nothing from here."""

from __future__ import annotations

__all__: list[str] = []
