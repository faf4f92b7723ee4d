"""Where a model's files are: a path, a repository on the Hugging Face hub, or an installed Python package."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from ..errors import CheckpointError, ConfigError
from ..taxonomy import Artifact
from .hub import Progress, download
from .packages import locate_package

__all__ = ["HubSource", "PackageSource", "PathSource", "ResolvedSource", "Source", "parse_source", "resolve_source"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_SEGMENT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,254}")
_WELL_KNOWN_REF = re.compile(r"refs/(?:pr|convert)/[^/]+")


@dataclass(frozen=True, slots=True)
class PathSource:
    """A folder or file, absolute or relative to the configuration."""

    path: str

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A repository on the hub, at a revision; ``path`` names a folder or file within it."""

    repository: str
    revision: str = "main"
    path: str = ""

    def __str__(self) -> str:
        revision = self.revision if _WELL_KNOWN_REF.fullmatch(self.revision) else quote(self.revision, safe="")
        return f"hf://{self.repository}@{revision}" + (f"/{self.path}" if self.path else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSource:
    """Files of an installed package, found without importing it."""

    package: str
    path: str = ""

    def __str__(self) -> str:
        return f"pkg://{self.package}" + (f"/{self.path}" if self.path else "")


Source = PathSource | HubSource | PackageSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSource:
    """Where the files are on this machine.

    :param revision: the commit of a hub repository, ``name==version`` of a package's distribution, None for a path.
    """

    path: Path
    revision: str | None
    source: Source


def parse_source(text: str) -> Source:
    """Read a source: a path, ``hf://org/name[@revision][/path]`` or ``pkg://package/path``.

    A slash in a revision is written ``%2F``, except in ``refs/pr/1`` and its like.

    :raises ConfigError: an unknown scheme, a malformed name, or a path with ``..`` in a hub or package source.
    """
    if not text.strip() or "\0" in text:
        raise ConfigError(f"{text!r} is no source: use a path, hf://org/name@revision or pkg://package/path")
    scheme = _SCHEME.fullmatch(text)
    if scheme is None:
        return PathSource(text)
    if scheme[1] == "hf":
        return _parse_hub(text, scheme[2])
    if scheme[1] == "pkg":
        package, _, path = scheme[2].partition("/")
        if not all(part.isidentifier() for part in package.split(".")):
            raise ConfigError(f"{text!r}: {package!r} is no importable package name")
        return PackageSource(package=package, path=_relative(text, path))
    raise ConfigError(f"{text!r}: the scheme {scheme[1]!r} is unknown; use a path, hf:// or pkg://")


def resolve_source(
    source: Source,
    *,
    relative_to: Path | None = None,
    cache_dir: Path | None = None,
    artifact: Artifact | None = None,
    progress: Progress | None = None,
) -> ResolvedSource:
    """Find the files of a source on this machine, fetching what is missing from the hub.

    :param relative_to: the folder relative paths start from, usually the configuration's; by default the working one.
    :param cache_dir: where hub files are kept; by default where the hub library keeps them.
    :param artifact: the form of the weights to fetch from the hub; by default safetensors where there are any.
    :param progress: told of downloads.
    :raises CheckpointError: nothing there, a package that is not installed, a repository that cannot be reached.
    :raises ConfigError: the hub library is not installed.
    """
    if isinstance(source, HubSource):
        snapshot = download(
            source.repository,
            source.revision,
            path=source.path,
            artifact=artifact,
            cache_dir=cache_dir,
            progress=progress,
            name=str(source),
        )
        return ResolvedSource(path=snapshot / source.path, revision=snapshot.name, source=source)
    if isinstance(source, PackageSource):
        path, revision = locate_package(source.package, source.path, name=str(source))
        return ResolvedSource(path=path, revision=revision, source=source)
    return ResolvedSource(path=_existing(source, relative_to), revision=None, source=source)


def _existing(source: PathSource, relative_to: Path | None) -> Path:
    try:
        named = Path(source.path).expanduser()
    except RuntimeError:
        raise CheckpointError(f"{source.path!r}: the home folder it starts with cannot be found") from None
    path = Path(os.path.normpath((relative_to or Path.cwd()) / named))
    if not path.exists():
        raise CheckpointError(f"{source.path!r}: there is nothing at {path}")
    return path


def _parse_hub(text: str, rest: str) -> HubSource:
    organisation, _, tail = rest.partition("/")
    match = re.match(r"([^/@]*)(?:@(refs/(?:pr|convert)/[^/]+|[^/]*))?(?:/(.*))?", tail, re.DOTALL)
    name, revision, path = match.groups() if match is not None else ("", None, None)
    if not _SEGMENT.fullmatch(organisation) or not _SEGMENT.fullmatch(name) or ".." in organisation + name:
        raise ConfigError(f"{text!r}: expected hf://org/name, optionally followed by @revision and /path")
    commit = "main" if revision is None else unquote(revision)
    if not _REVISION.fullmatch(commit) or ".." in commit:
        raise ConfigError(f"{text!r}: {commit!r} is no revision; use a branch, a tag or a commit")
    return HubSource(repository=f"{organisation}/{name}", revision=commit, path=_relative(text, path or ""))


def _relative(text: str, path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path:
        raise ConfigError(f"{text!r}: the path {path!r} leaves what the source names")
    return "" if parts == PurePosixPath() else parts.as_posix()
