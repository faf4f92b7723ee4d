"""Finding plugins: entry points of installed distributions, each once, in an order that no file system decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from importlib_metadata import distributions

from ..contract import ENTRY_POINT_GROUP
from .isolation import explain
from .records import PluginSource
from .settings import same_name

__all__ = ["EntryPointLike", "Found", "FoundPlugins", "find_installed", "sort_out"]


class EntryPointLike(Protocol):
    """What discovery needs of an entry point; those of ``importlib.metadata`` have it."""

    @property
    def name(self) -> str:
        """The plugin's name."""
        ...

    @property
    def value(self) -> str:
        """``module`` or ``module:attribute``."""
        ...

    @property
    def dist(self) -> Any:
        """The distribution, with its ``name`` and ``version``, or None."""
        ...

    def load(self) -> Any:
        """Import the module and return what ``value`` names."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """An entry point that names a plugin; nothing of it has been imported."""

    source: PluginSource
    entry_point: EntryPointLike


@dataclass(frozen=True, slots=True)
class FoundPlugins:
    """What was found, sorted by plugin name and distribution, with a warning for whatever was odd."""

    plugins: tuple[Found, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """One set of metadata of a distribution; the one a later folder repeats, or a stale egg-info, is shadowed."""

    rank: tuple[int, bool, tuple[int, ...]]
    name: str
    version: str
    plugins: tuple[Found, ...]

    @property
    def values(self) -> set[tuple[str, str]]:
        return {(found.source.name, found.source.entry_point) for found in self.plugins}


def find_installed() -> FoundPlugins:
    """The entry points of every distribution on ``sys.path``; metadata is read of those with plugins alone."""
    warnings: list[str] = []
    copies: dict[str, list[_Copy]] = {}
    folders: dict[str, int] = {}
    for distribution in distributions():
        try:
            copy = _read(distribution, folders)
        except Exception as cause:  # noqa: BLE001 - damaged metadata of one distribution hides no other
            warnings.append(f"the metadata of {distribution!r} cannot be read: {explain(cause)[1]}")
            continue
        if copy is not None:
            copies.setdefault(same_name(copy.name), []).append(copy)
    found: list[Found] = []
    for _, same in sorted(copies.items()):
        used, *shadowed = sorted(same, key=lambda copy: copy.rank)
        found.extend(used.plugins)
        warnings.extend(_shadow_warnings(used, shadowed))
    return FoundPlugins(_each_once(found), tuple(warnings))


def sort_out(points: Iterable[EntryPointLike]) -> FoundPlugins:
    """Entry points without repetitions of (distribution, name, value), sorted by name and distribution."""
    return FoundPlugins(
        _each_once(
            _found(point, point.dist.name, point.dist.version) if point.dist is not None else _found(point, "", "")
            for point in points
        )
    )


def _each_once(found: Iterable[Found]) -> tuple[Found, ...]:
    unique: dict[tuple[str, str, str], Found] = {}
    for item in found:
        source = item.source
        unique.setdefault((same_name(source.distribution), source.name, source.entry_point), item)
    return tuple(sorted(unique.values(), key=lambda item: item.source))


def _found(point: EntryPointLike, distribution: str, version: str) -> Found:
    source = PluginSource(name=point.name, distribution=distribution, version=version, entry_point=point.value)
    return Found(source, point)


def _read(distribution: Any, folders: dict[str, int]) -> _Copy | None:
    folder = str(distribution.locate_file(""))
    position = folders.setdefault(folder, len(folders))
    text = distribution.read_text("entry_points.txt")
    if not text or ENTRY_POINT_GROUP not in text:
        return None
    points = distribution.entry_points.select(group=ENTRY_POINT_GROUP)
    if not points:
        return None
    name, version = distribution.name, distribution.version
    stale_form = distribution.read_text("METADATA") is None
    return _Copy(
        rank=(position, stale_form, tuple(-int(digits) for digits in re.findall(r"\d+", version))),
        name=name,
        version=version,
        plugins=tuple(_found(point, name, version) for point in points),
    )


def _shadow_warnings(used: _Copy, shadowed: Iterable[_Copy]) -> Iterator[str]:
    for copy in shadowed:
        if copy.version != used.version or copy.values != used.values:
            yield (
                f"distribution {used.name!r} is installed more than once; {used.version} is used, "
                f"the entry points of {copy.version} are not"
            )
