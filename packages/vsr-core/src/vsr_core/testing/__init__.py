"""For the tests of backends, policies and applications: tiny checkpoints, and a backend that needs no framework."""

from __future__ import annotations

from .checkpoints import BertShape, write_bert
from .toy import ToyBackend, ToyHandle, ToyPlugin

__all__ = ["BertShape", "ToyBackend", "ToyHandle", "ToyPlugin", "write_bert"]
