"""The folder of what an exporter or a merger writes: it appears whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..catalog.documents import model_folder
from ..contract import ModelSpec
from ..errors import InvalidInputError

__all__ = ["copy_documents", "listed", "new_folder"]

_INDEX = "model.safetensors.index.json"


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to write into, which takes the name ``out`` once the block is done.

    It lies beside ``out`` until then, and is removed where the block fails or is interrupted.

    :raises InvalidInputError: the folder cannot be made, or somebody else has put something into ``out`` meanwhile.
    """
    staging = out.with_name(f".{out.name}.{uuid.uuid4().hex[:12]}.partial")
    with _refusing(out):
        staging.mkdir()
    try:
        yield staging
        for name in listed(staging):
            _sync(staging / name)
        _sync(staging)
        with _refusing(out):
            if out.is_dir():
                out.rmdir()
            staging.rename(out)
        _sync(out.parent)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def copy_documents(path: Path, spec: ModelSpec, folder: Path) -> None:
    """Copy all files a checkpoint is made of but its weights; those of dense layers after pooling are copied."""
    source = model_folder(path)
    for name in spec.files:
        if name in spec.weights or name.rpartition("/")[2] == _INDEX:
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target)  # not its mode: a cache may hold it read-only


def listed(folder: Path) -> tuple[str, ...]:
    """All files of a folder and the folders in it, relative, in POSIX form, sorted."""
    return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))


@contextmanager
def _refusing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInputError(f"{str(out)!r} cannot be made: {error.strerror or error}", param="out") from error


def _sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk; not every system lets folders be synced."""
    with contextlib.suppress(PermissionError) if path.is_dir() else contextlib.nullcontext():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
