"""Reading a checkpoint's safetensors strictly: every tensor a forward needs, of the shape it needs, and no surprise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from vsr_core.errors import CheckpointError

__all__ = ["StrictTensors", "check_values", "read_tensors"]


def read_tensors(folder: Path, files: Sequence[str]) -> dict[str, Tensor]:
    """Every tensor of the weight files, copied into memory, so that the files may be replaced at any time.

    :raises CheckpointError: a file is missing or damaged, or a tensor stands in two files.
    """
    tensors: dict[str, Tensor] = {}
    for name in files:
        path = folder / name
        try:
            with safe_open(path, framework="pt") as archive:
                for key in archive.keys():  # noqa: SIM118 - the archive is no mapping
                    if key in tensors:
                        raise CheckpointError(f"{path}: the tensor {key!r} stands in another weight file too")
                    tensors[key] = archive.get_tensor(key).clone()
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} cannot be read as safetensors: {error}") from None
    return tensors


def check_values(tensors: Mapping[str, Tensor], *, where: str) -> None:
    """Refuse weights that are no finite numbers; the position ids some checkpoints carry are whole numbers by right.

    :raises CheckpointError: naming the tensor.
    """
    for name, tensor in tensors.items():
        if not name.endswith("position_ids"):
            _check_float(name, tensor, where)


def _check_float(name: str, tensor: Tensor, where: str) -> None:
    if not tensor.is_floating_point():
        raise CheckpointError(f"{where}: the tensor {name!r} is of dtype {tensor.dtype}, not of a float dtype")
    if not bool(torch.isfinite(tensor).all()):
        raise CheckpointError(f"{where}: the tensor {name!r} holds NaN or infinity")


class StrictTensors:
    """Hands out the tensors of one checkpoint by name, and tells what nobody asked for.

    :attr:`where` is how messages call the checkpoint.

    :param prefixes: what names may begin with, besides nothing; the first under which ``probe`` is found holds.
    :param probe: the name of a tensor that every checkpoint of the family has.
    """

    def __init__(self, tensors: Mapping[str, Tensor], *, where: str, prefixes: Sequence[str], probe: str) -> None:
        self._tensors = tensors
        self.where = where
        self._taken: set[str] = set()
        found = [prefix for prefix in ("", *prefixes) if prefix + probe in tensors]
        if not found:
            raise CheckpointError(f"{where}: the tensor {probe!r} is missing; these are not weights of this family")
        self._prefix = found[0]

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A float tensor of the family, by its name without a prefix.

        :raises CheckpointError: it is missing, has another shape, is not of a float dtype, or is not finite.
        """
        return self._take(self._prefix + name, shape)

    def take_head(self, name: str, shape: tuple[int | None, ...]) -> Tensor:
        """As :meth:`take`, for a tensor of the head, which stands beside the family's and has no prefix.

        :param shape: None stands for any size.
        """
        return self._take(name, shape)

    def find(self, name: str) -> Tensor | None:
        """A tensor by its name with or without the prefix, None where there is none; taking it is not asked for."""
        return self._tensors.get(self._prefix + name, self._tensors.get(name))

    def _take(self, key: str, shape: tuple[int | None, ...]) -> Tensor:
        tensor = self._tensors.get(key)
        if tensor is None:
            raise CheckpointError(f"{self.where}: the tensor {key!r} is missing")
        if len(shape) != tensor.ndim or any(
            want not in (None, found) for want, found in zip(shape, tensor.shape, strict=True)
        ):
            said = ", ".join("any" if size is None else str(size) for size in shape)
            raise CheckpointError(
                f"{self.where}: the tensor {key!r} has shape {list(tensor.shape)}, the configuration says [{said}]"
            )
        _check_float(key, tensor, self.where)
        self._taken.add(key)
        return tensor

    def refuse_others(self, *, allowed: Collection[str]) -> None:
        """Refuse tensors nobody took, unless their name begins, after any prefix, with one of ``allowed``.

        :raises CheckpointError: naming the first few.
        """
        left = sorted(
            key
            for key in set(self._tensors) - self._taken
            if not key.removeprefix(self._prefix).startswith(tuple(allowed)) and not key.startswith(tuple(allowed))
        )
        if left:
            shown = ", ".join(map(repr, left[:3])) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
            raise CheckpointError(f"{self.where}: the weights hold tensors this family does not have: {shown}")
