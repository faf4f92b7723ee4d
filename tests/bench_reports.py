"""What the recorded reports of the benchmarks' tests have in common."""

import io

from rich.console import Console

from bench.report import print_report

DATE = "2026-01-02T03:04:05+00:00"
MACHINE = {"cpu": "A processor", "processors": 2, "memory_bytes": 2**34, "system": "Linux", "python": "3.11.7"}


def facts(dtype="float32"):
    """What a worker says of itself."""
    return {"dtype": dtype, "threads": 2, "versions": {"torch": "2.13.0"}, "details": {}}


def rendered(renderable):
    """What a terminal would show."""
    file = io.StringIO()
    print_report(renderable, Console(file=file))
    return file.getvalue()
