"""The vsr backend on OpenVINO; applications use it through ``vsr_core`` and import nothing from here."""

from __future__ import annotations

__all__: list[str] = []
