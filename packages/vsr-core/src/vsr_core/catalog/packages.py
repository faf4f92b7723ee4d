"""Files that come with an installed Python package. The package is found, never imported."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import importlib_metadata

from ..errors import CheckpointError

__all__ = ["locate_package"]


def locate_package(package: str, path: str, *, name: str) -> tuple[Path, str | None]:
    """The place of a package's file or folder, and ``name==version`` of the distribution it came with.

    Only the top-level name is looked up and the rest is joined as a path, since looking up a nested name would
    import the packages around it.

    :param package: a package name, dotted for a nested one.
    :param path: relative to the package's folder; ``""`` for the folder itself.
    :param name: the source as the user wrote it, for messages.
    :raises CheckpointError: not installed, no such file in it, or a link that leads out of it.
    """
    top, *nested = package.split(".")
    inner = PurePosixPath(*nested, path)
    roots = _roots(top)
    if not roots:
        raise CheckpointError(f"{name}: the package {top!r} is not installed; install the distribution that has it")
    for root in roots:
        place = root.joinpath(*inner.parts)
        if place.exists():
            _check_links(root, place, name)
            return place, _distribution(top, root, inner)
    raise CheckpointError(f"{name}: the package {top!r} is installed and has no {inner.as_posix()!r}")


def _roots(top: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return []
    locations = spec.submodule_search_locations if spec is not None else None
    return [root for location in locations or () if (root := Path(location)).is_dir()]


def _check_links(root: Path, place: Path, name: str) -> None:
    real_root = root.resolve()
    for path in (place, *(place.rglob("*") if place.is_dir() else ())):
        if not path.resolve().is_relative_to(real_root):
            raise CheckpointError(f"{name}: {path} is a link that leads out of the package")


def _distribution(top: str, root: Path, inner: PurePosixPath) -> str | None:
    """``name==version``; of several distributions sharing a package, the one that lists the files."""
    found = [importlib_metadata.distribution(name) for name in set(_owners(top))]
    if len(found) > 1:
        wanted = PurePosixPath(root.name) / inner
        found = [
            owner for owner in found if any(PurePosixPath(file).is_relative_to(wanted) for file in (owner.files or ()))
        ]
    return f"{found[0].name}=={found[0].version}" if len(found) == 1 else None


def _owners(top: str) -> Iterator[str]:
    yield from importlib_metadata.packages_distributions().get(top, ())
