"""The benchmark's side: starts worker processes, asks them, and ends whatever was started."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from .protocol import Ask, encode

__all__ = ["Completed", "Worker", "WorkerError", "run_bounded"]

T = TypeVar("T")

_GRACE = 5.0


class WorkerError(Exception):
    """A worker could not be started, failed, or did not answer in time; the message is the reason."""


class Worker:
    """A process that answers one command at a time. It and its children end with the block.

    :param log: where its standard error goes; its last line explains an early end.
    """

    def __init__(self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._lines: queue.Queue[str | None] = queue.Queue()
        try:
            with log.open("wb") as errors:
                self._process = subprocess.Popen(
                    list(command),
                    cwd=cwd,
                    env=dict(environ),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    encoding="utf-8",
                    start_new_session=True,
                )
        except OSError as error:
            raise WorkerError(f"{command[0]!r} cannot be started: {error}") from None
        threading.Thread(target=self._read, args=(_open(self._process.stdout),), daemon=True).start()

    def ask(self, ask: Ask, reply: type[T], *, timeout: float) -> T:
        """Send a command and wait for its answer.

        :raises WorkerError: the worker failed, ended, or took longer than ``timeout`` seconds, after which it is ended.
        """
        try:
            stdin = _open(self._process.stdin)
            stdin.write(encode(ask))
            stdin.flush()
        except OSError:
            raise WorkerError(self._obituary()) from None
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            self._kill()
            raise WorkerError(f"no answer to {ask.command!r} within {timeout:g} s") from None
        if line is None:
            raise WorkerError(self._obituary())
        return _decode(line, reply)

    def close(self) -> None:
        """Let the worker end by itself, and make it end if it does not. Calling it again does nothing."""
        with contextlib.suppress(OSError):
            stdin = _open(self._process.stdin)
            if self._process.poll() is None:
                stdin.write(encode(Ask(command="close")))
            stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        self._kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._kill()

    def _read(self, stdout: IO[str]) -> None:
        with stdout:
            for line in stdout:
                self._lines.put(line)
        self._lines.put(None)

    def _kill(self) -> None:
        _end_group(self._process)
        with contextlib.suppress(OSError):
            _open(self._process.stdin).close()

    def _obituary(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = f": {lines[-1].strip()}" if lines else ""
        return f"the process ended with status {self._process.poll()}{last}"


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended, and what it wrote."""

    status: int
    stdout: str
    stderr: str


def run_bounded(command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], timeout: float) -> Completed:
    """Run a command to its end; it and its children are ended when time runs out or this process is interrupted.

    :raises WorkerError: it cannot be started, or takes longer than ``timeout`` seconds.
    """
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise WorkerError(f"{command[0]!r} cannot be started: {error}") from None
    with process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise WorkerError(f"{Path(command[0]).name!r} took longer than {timeout:g} s") from None
        finally:
            _end_group(process)
    return Completed(process.returncode, stdout, stderr)


def _end_group(process: subprocess.Popen[Any]) -> None:
    """End a process, and what is left of the group it leads: asked first, then made to."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)


def _decode(line: str, reply: type[T]) -> T:
    try:
        body = TypeAdapter(dict[str, Any]).validate_json(line)
        if "error" in body:
            raise WorkerError(" ".join(str(body["error"]).split()))
        return TypeAdapter(reply).validate_python(body.get("result"))
    except ValidationError:
        raise WorkerError(f"an answer that is none: {line.strip()[:200]!r}") from None


def _open(stream: IO[str] | None) -> IO[str]:
    if stream is None:  # the type of Popen's attributes; they are always pipes here
        raise WorkerError("the process has no pipe")
    return stream
