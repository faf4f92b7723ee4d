"""What an operator may set on the backend ``openvino``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["OpenVinoOptions", "Performance"]

Performance = Literal["throughput", "latency"]
"""What OpenVINO shares out the compute threads for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenVinoOptions:
    """Options of one instance.

    :param performance: ``throughput`` runs several batches side by side, each on a part of the threads, and gets the
        most through; ``latency`` runs one batch at a time on all of them, and answers a lone text soonest.
    """

    performance: Performance = "throughput"
