"""Creating sessions of ONNX Runtime with options that are all set on purpose, and saying what stopped one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime
from vsr_core.errors import CheckpointError, LoadError

from .options import GraphOptimization, OnnxOptions
from .saturation import saturates

__all__ = ["Provider", "SessionFactory"]

_ERRORS_ONLY, _FATAL_ONLY = 3, 4
_LEVELS: Mapping[GraphOptimization, str] = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_DATA_FOLDER = "session.model_external_initializers_file_folder_path"
_creating = threading.Lock()
"""Sessions are created one at a time: their creation is not safe from several threads, and the log level is shared."""

Provider = tuple[str, Mapping[str, str]]
"""An execution provider by ONNX Runtime's name, with its options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFactory:
    """Creates the sessions of one model.

    :param threads: compute threads of each session.
    :param backend_id: the model that errors are about.
    """

    options: OnnxOptions
    threads: int
    backend_id: str

    def create(self, path: Path, providers: Sequence[Provider], *, content: bytes | None = None) -> Any:
        """A session on the graph in a file.

        :param content: the graph, where it is not the file as it stands; its external data lies beside ``path``.
        :raises CheckpointError: ONNX Runtime cannot make sense of the graph.
        :raises LoadError: a provider failed while it took the graph over.
        """
        options = self._session_options()
        if content is not None:
            options.add_session_config_entry(_DATA_FOLDER, str(path.parent))
        try:
            return _create(str(path) if content is None else content, options, providers)
        except Exception as error:  # each of ONNX Runtime's errors is an Exception of its own
            if len(providers) == 1:
                raise CheckpointError(f"{path}: ONNX Runtime cannot load it: {_explained(error)}") from error
            raise self._failed(str(path), providers, error) from error

    def create_from(self, content: bytes, providers: Sequence[Provider]) -> Any:
        """A session on a graph without a file.

        :raises LoadError: a provider failed.
        """
        try:
            return _create(content, self._session_options(), providers)
        except Exception as error:
            raise self._failed("a graph", providers, error) from error

    def _failed(self, what: str, providers: Sequence[Provider], error: Exception) -> LoadError:
        return LoadError(
            f"{self.backend_id}: {what} cannot be run on {providers[0][0]}: {_shortened(error)}",
            backend_id=self.backend_id,
        )

    def _session_options(self) -> Any:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.enable_mem_pattern = False
        options.enable_cpu_mem_arena = self.options.arena
        level = _LEVELS[self.options.graph_optimization]
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        spinning, denormals = str(int(self.options.spinning)), str(int(self.options.denormals_as_zero))
        options.add_session_config_entry("session.intra_op.allow_spinning", spinning)
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        options.add_session_config_entry("session.set_denormal_as_zero", denormals)
        options.add_session_config_entry("session.x64quantprecision", "1" if saturates() else "0")
        return options


def _create(graph: str | bytes, options: Any, providers: Sequence[Provider]) -> Any:
    """A session, created on a thread that ends with it.

    The first session of a process, if its options say so, leaves the thread that creates it computing with denormal
    numbers as zeros for good; that thread must not be anybody's.
    """
    with _creating, _quiet(fatal_only=len(providers) > 1), ThreadPoolExecutor(1, "vsr onnx session") as aside:
        return aside.submit(
            onnxruntime.InferenceSession,
            graph,
            options,
            providers=[name for name, _ in providers],
            provider_options=[dict(settings) for _, settings in providers],
            enable_fallback=0,  # a fallback is for the policy to make; ONNX Runtime's own is printed
        ).result()


@contextlib.contextmanager
def _quiet(*, fatal_only: bool) -> Iterator[None]:
    """Keep ONNX Runtime's own log to errors; a provider that does not start is told by us."""
    onnxruntime.set_default_logger_severity(_FATAL_ONLY if fatal_only else _ERRORS_ONLY)
    try:
        yield
    finally:
        onnxruntime.set_default_logger_severity(_ERRORS_ONLY)


def _explained(error: Exception) -> str:
    text = str(error)
    if "guarantees* support" in text or "Unsupported model IR version" in text:
        return (
            f"it was written for a newer ONNX than onnxruntime {onnxruntime.__version__} reads: upgrade onnxruntime,"
            f" or export it with a lower opset ({_shortened(error)})"
        )
    if "is not a registered function/op" in text or "No Op registered for" in text:
        return f"it has an operator that onnxruntime {onnxruntime.__version__} does not have ({_shortened(error)})"
    return f"{_shortened(error)}; export or fetch it again"


def _shortened(error: Exception) -> str:
    """The message without the places in ONNX Runtime's sources."""
    text = str(error).split(" failed:", 1)[-1]
    if "ONNX Runtime only" in text:
        text = text[text.index("ONNX Runtime only") :]
    elif "Unsupported model" in text:
        text = text[text.index("Unsupported model") :]
    text = " ".join(text.split())
    return text if len(text) <= 240 else f"{text[:237]}..."
