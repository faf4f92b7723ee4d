"""Tiny checkpoints, each written once for a session."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import get_args

import pytest

from ...taxonomy import Capability
from ..encoders import EncoderFamily, EncoderHead, EncoderShape, write_encoder

__all__ = ["HEADS", "Folders", "cut", "poison", "session_folders", "write_tiny"]

HEADS: dict[Capability, EncoderHead] = {
    Capability.EMBEDDING: "embedding",
    Capability.SEQUENCE_CLASSIFICATION: "sequence",
    Capability.PAIR_CLASSIFICATION: "nli",
    Capability.TOKEN_CLASSIFICATION: "token",
    Capability.RERANKING: "reranker",
}
"""The head of a checkpoint that is for a capability."""


class Folders:
    """Folders by key, each made by the first who asks; nobody changes one that is there."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._known: dict[Hashable, Path] = {}

    def get(self, key: Hashable, write: Callable[[Path], Path]) -> Path:
        """The folder of a key.

        :param write: fills an empty folder and returns where the model is.
        """
        if key not in self._known:
            self._known[key] = write(self._factory.mktemp("checkpoint"))
        return self._known[key]

    def copy(self, folder: Path) -> Path:
        """A copy that may be changed."""
        return shutil.copytree(folder, self._factory.mktemp("copy") / folder.name)


_FOLDERS = pytest.StashKey[Folders]()


def session_folders(request: pytest.FixtureRequest) -> Folders:
    """The folders of the session that a fixture belongs to."""
    stash = request.session.stash
    if _FOLDERS not in stash:
        stash[_FOLDERS] = Folders(request.getfixturevalue("tmp_path_factory"))
    return stash[_FOLDERS]


def write_tiny(folder: Path, family: str, *, head: EncoderHead = "embedding", seed: int = 0) -> Path:
    """Write a random encoder of three layers.

    :raises NotImplementedError: the kit knows no such family.
    """
    for known in get_args(EncoderFamily):
        if known == family:
            shape = None if family in ("minilm", "mmbert") else EncoderShape(layers=3)
            return write_encoder(folder, known, head=head, shape=shape, seed=seed)
    raise NotImplementedError(f"the kit writes no checkpoints of the family {family!r}: write them in write_checkpoint")


def poison(folder: Path) -> Path:
    """Put NaN into every floating-point tensor of the safetensors files of a folder."""
    import numpy as np
    from safetensors.numpy import load_file, save_file

    for path in sorted(folder.glob("*.safetensors")):
        tensors = load_file(path)
        for tensor in tensors.values():
            if np.issubdtype(tensor.dtype, np.floating):
                tensor.reshape(-1)[::3] = np.nan
        save_file(tensors, path)
    return folder


def cut(path: Path) -> None:
    """Leave a file without its second half."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
