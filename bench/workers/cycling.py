"""Worker: loads and unloads one model as often as it is told, in a runtime that lives on."""

from __future__ import annotations

import argparse
import gc
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..configuration import configuration
from ..corpus import MODEL
from ..gauges import resident_bytes
from ..protocol import Ask, CycleMemory, Done, IdleUse, Loaded, Reply
from ..serving import serve_session

if TYPE_CHECKING:
    from vsr_core.runtime import Runtime

__all__ = ["Cycling", "main"]


class Cycling:
    """Answers ``load`` with a file of texts, then ``cycle`` and ``idle``.

    Garbage is collected after unloading, and nothing else is done to give memory back: the numbers are those of an
    application.
    """

    def __init__(self, *, backend: str, source: str) -> None:
        self._configuration = configuration("auto", backend=backend, source=source)
        self._texts: list[str] = []
        self._opened: Runtime | None = None

    def answer(self, ask: Ask) -> Reply:
        """The answer to one command."""
        match ask.command:
            case "load":
                return self._open(Path(ask.path or ""))
            case "cycle":
                return self._cycle()
            case "idle":
                return self._idle(ask.count or 1)
            case "close":
                if self._opened is not None:
                    self._opened.close()
                return Done()
            case other:
                raise ValueError(f"a worker that loads and unloads has no answer to {other!r}")

    @property
    def _runtime(self) -> Runtime:
        if self._opened is None:
            raise RuntimeError("there is no runtime yet")
        return self._opened

    def _open(self, texts: Path) -> Loaded:
        self._texts = json.loads(texts.read_text(encoding="utf-8"))
        start = time.perf_counter()
        from vsr_core.runtime import Runtime

        self._opened = Runtime(self._configuration)
        return Loaded(seconds=time.perf_counter() - start, resident_bytes=resident_bytes())

    def _cycle(self) -> CycleMemory:
        runtime = self._runtime
        start = time.perf_counter()
        info = runtime.load()
        seconds = time.perf_counter() - start
        runtime.embed(self._texts)
        loaded = resident_bytes()
        runtime.unload("default")
        gc.collect()
        return CycleMemory(
            seconds=seconds,
            dtype=(info.dtype.actual if info.dtype is not None else None) or "unknown",
            loaded_bytes=loaded,
            unloaded_bytes=resident_bytes(),
        )

    def _idle(self, seconds: int) -> IdleUse:
        """Load the model, then wait without asking it anything."""
        runtime = self._runtime
        runtime.load()
        start, used = time.perf_counter(), time.process_time()
        time.sleep(seconds)
        used, passed = time.process_time() - used, time.perf_counter() - start
        runtime.unload("default")
        return IdleUse(seconds=passed, processor_seconds=used)


def main() -> None:
    """Serve the cycles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--model", default=MODEL, metavar="FOLDER", help="an export, for the engines that need one")
    arguments = parser.parse_args()
    serve_session(Cycling(backend=arguments.backend, source=arguments.model).answer)


if __name__ == "__main__":
    main()
