"""The kit that holds other people's backends to the standard of our own; needs the extra ``vsr-core[testing]``."""

from __future__ import annotations

from .backends import BackendConformance
from .engines import EncoderEngineConformance
from .offers import Cell
from .plugins import PluginConformance
from .standard import Conformance
from .subject import BackendSubject, Model

__all__ = [
    "BackendConformance",
    "BackendSubject",
    "Cell",
    "Conformance",
    "EncoderEngineConformance",
    "Model",
    "PluginConformance",
]
