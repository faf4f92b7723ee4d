"""Running what a host claims, and writing down what came of it; needs the extra ``vsr-core[testing]``."""

from __future__ import annotations

from .host import verify_host
from .model import verify_model
from .trials import Progress

__all__ = ["Progress", "verify_host", "verify_model"]
