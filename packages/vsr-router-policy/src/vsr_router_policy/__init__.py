"""Routing policies for vsr; configurations name them, and nothing is imported from here."""

from __future__ import annotations

__all__: list[str] = []
