"""The loaded models: who is loaded, who uses it, and when it may go."""

from __future__ import annotations

from .lease import Lease
from .pool import ModelPool
from .sources import ModelSources

__all__ = ["Lease", "ModelPool", "ModelSources"]
