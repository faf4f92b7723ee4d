"""The receipt of a verification: what was run, where, with which versions, and what came of it."""

from __future__ import annotations

import contextlib
import errno
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal

from ..contract import Choice
from ..errors import InvalidInputError
from ..taxonomy import Artifact, Capability, Feature
from ..wire import from_json, to_json

__all__ = [
    "RECEIPT_SCHEMA",
    "BackendFacts",
    "HostFacts",
    "OutcomeState",
    "Receipt",
    "ReceiptCell",
    "check_place",
    "differences",
    "installed_version",
    "read_receipt",
    "system_name",
]

RECEIPT_SCHEMA: Final = 1
"""Version of the receipt's JSON form."""

OutcomeState = Literal["verified", "failed", "not_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """The machine; ``processors`` are those this process may use, ``memory_bytes`` is all there is."""

    system: str
    processors: int
    cpu: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFacts:
    """A backend instance on that machine.

    :param adapter: the backend it is an instance of; :param usable: whether its probe found it usable, else ``reason``.
    :param versions: distribution -> version of what it runs on, its own included.
    """

    adapter: str
    usable: bool
    reason: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptCell:
    """One claim or refusal that was put to the test, or could not be.

    :param claim: whether the backend says yes to the cell or refuses it.
    :param checks: what ran, in order; :param reason: why it failed or was not run, or of a refusal the reason given.
    :param measured: the largest difference between two answers that are to be equal; :param allowed: its bound.
    :param checkpoint: the model it ran on, by its name in the receipt's ``checkpoints``.
    """

    backend: str
    capability: Capability
    claim: Literal["supported", "refused"]
    state: OutcomeState
    family: str | None = None
    artifact: Artifact | None = None
    feature: Feature | None = None
    device: Choice | None = None
    provider: Choice | None = None
    dtype: Choice | None = None
    checks: tuple[str, ...] = ()
    measured: float | None = None
    allowed: float | None = None
    seconds: float = 0.0
    reason: str | None = None
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Everything one run of ``vsr verify`` found.

    :param created: UTC, in the form of ISO 8601.
    :param versions: of Python, vsr-core and the installed plugins' distributions.
    :param checkpoints: name -> content hash of each model that was loaded.
    """

    created: str
    host: HostFacts
    versions: Mapping[str, str]
    backends: Mapping[str, BackendFacts]
    checkpoints: Mapping[str, str]
    cells: tuple[ReceiptCell, ...]
    schema: int = RECEIPT_SCHEMA

    def count(self, state: OutcomeState) -> int:
        """How many cells are in a state."""
        return sum(cell.state == state for cell in self.cells)

    def write(self, path: Path) -> None:
        """Write it as JSON; a file that is there is replaced once the new one is complete.

        :raises InvalidInputError: it cannot be written there.
        """
        with _fresh(path) as fresh:
            fresh.write_text(json.dumps(to_json(self), indent=1) + "\n", encoding="utf-8")
            fresh.replace(path)


def check_place(path: Path) -> None:
    """See that a receipt can be written to a place, before minutes are spent on it; a file that is there is kept.

    :raises InvalidInputError: it cannot.
    """
    with _fresh(path) as fresh:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not (folder := path.absolute().parent).is_dir():
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {str(folder)!r}")
        fresh.touch()


@contextlib.contextmanager
def _fresh(path: Path) -> Iterator[Path]:
    """A file beside the one to be written, gone in the end."""
    fresh = path.parent / f".{path.name}.part"
    try:
        yield fresh
        fresh.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InvalidInputError(f"{str(path)!r} cannot be written: {reason}", param="receipt") from None


def read_receipt(path: Path) -> Receipt:
    """Read a receipt that ``vsr verify`` wrote.

    :raises InvalidInputError: it cannot be read, or is none.
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"{str(path)!r} cannot be read: {error.strerror or error}", param="receipt") from None
    except ValueError:
        raise InvalidInputError(f"{str(path)!r} is no receipt: it holds no JSON", param="receipt") from None
    schema = body.get("schema") if isinstance(body, dict) else None
    if schema != RECEIPT_SCHEMA:
        raise InvalidInputError(
            f"{str(path)!r} is no receipt of schema {RECEIPT_SCHEMA}: its schema is {schema!r}; write one with"
            " 'vsr verify --receipt FILE'",
            param="receipt",
        )
    try:
        return from_json(Receipt, body)
    except InvalidInputError as error:
        raise InvalidInputError(f"{str(path)!r} is no receipt: {error.message}", param="receipt") from None


def differences(receipt: Receipt, backend: str) -> tuple[str, ...]:
    """How this host differs from that of a receipt as far as a backend is concerned; it vouches only where nothing does."""
    facts = receipt.backends.get(backend)
    if facts is None:
        return (f"the receipt says nothing of {backend}",)
    there = {name: receipt.versions.get(name) for name in ("python", "vsr-core")} | dict(facts.versions)
    found = [
        f"{name} was {then or 'unknown'} and is {now or 'not installed'}"
        for name, then in there.items()
        if (now := installed_version(name)) != then
    ]
    if receipt.host.system != system_name():
        found.append(f"the system was {receipt.host.system} and is {system_name()}")
    return tuple(found)


def installed_version(name: str) -> str | None:
    """The version of Python or of a distribution, None where it is not installed."""
    if name == "python":
        return platform.python_version()
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def system_name() -> str:
    """The operating system and the kind of processor, such as ``Linux x86_64``."""
    return f"{platform.system()} {platform.machine()}"
