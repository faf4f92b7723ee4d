"""``python -m vsr_core.cli`` is ``vsr``."""

from __future__ import annotations

import sys

from .entry import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
