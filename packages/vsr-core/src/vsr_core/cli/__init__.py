"""The command ``vsr``. Importing this room imports typer and nothing heavier; commands import what they need."""

from __future__ import annotations

from .entry import main

__all__ = ["main"]
