"""The content hash of a model: what makes two folders the same model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ..errors import CheckpointError
from .documents import model_folder

__all__ = ["hash_files"]


def hash_files(path: Path, files: Sequence[str]) -> str:
    """SHA-256, hex, over the names and contents of ``files``, in the order of their names.

    :param path: the model's folder, or one file in it.
    :param files: names relative to the folder, such as ``ModelSpec.files``.
    :raises CheckpointError: a file is missing or cannot be read.
    """
    folder = model_folder(path)
    total = hashlib.sha256()
    for name in sorted(set(files)):
        try:
            with (folder / name).open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise CheckpointError(f"{folder / name}: cannot be read: {error.strerror or error}") from None
        total.update(f"{len(name.encode())}:{name}:{content}\n".encode())
    return total.hexdigest()
