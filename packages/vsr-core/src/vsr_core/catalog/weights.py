"""Which files of a folder are the weights, in which form, and whether they are whole. Pickles are never weights."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath

from ..errors import CheckpointError
from ..taxonomy import Artifact
from .documents import inside, read_document
from .graphs import find_graphs, is_quantized
from .manifest import HEAD_WEIGHTS
from .safetensors_header import TensorEntry, read_safetensors_header

__all__ = [
    "ADAPTER_CONFIG",
    "FORMS",
    "artifact_of_file",
    "available",
    "check_not_pointer",
    "is_pickle",
    "read_headers",
    "shard_index",
    "with_companions",
]

FORMS: tuple[Artifact, ...] = (
    Artifact.LORA_ADAPTER,
    Artifact.FULL,
    Artifact.ONNX,
    Artifact.OPENVINO_IR,
    Artifact.GGUF,
    Artifact.QUANTIZED,
)
"""The forms a folder can hold weights in; where it holds several, the first is meant unless an entry says otherwise.

Quantised graphs are a form of their own here, so that they never stand in for the others.
"""

ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
_INDEX = "model.safetensors.index.json"
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".h5", ".msgpack", ".joblib", ".npy", ".npz")
_GRAPHS = (Artifact.ONNX, Artifact.OPENVINO_IR)
_POINTER = b"version https://git-lfs"


def available(names: Collection[str], base: str = "") -> dict[Artifact, tuple[str, ...]]:
    """The weights a folder offers, by form in the order of :data:`FORMS`, each form with the files to load.

    An empty tuple means that there are several candidates and nothing says which is meant.

    :param names: the files of the folder, relative, in POSIX form.
    :param base: the subfolder that holds the transformer, if it is not the folder itself.
    """
    prefix = f"{base}/" if base else ""
    found = {
        Artifact.LORA_ADAPTER: _adapter(names, prefix),
        Artifact.FULL: _full(names, prefix),
        Artifact.ONNX: _onnx(names, prefix, quantized=False),
        Artifact.OPENVINO_IR: _openvino(names, prefix, quantized=False),
        Artifact.GGUF: _gguf(names, prefix),
        Artifact.QUANTIZED: _quantized(names, prefix),
    }
    return {form: files for form in FORMS if (files := found[form]) is not None}


def artifact_of_file(path: Path) -> Artifact:
    """The form of a single weight file, by its name.

    :raises CheckpointError: a pickle, or a file of no known form.
    """
    forms = {
        ".safetensors": Artifact.FULL,
        ".onnx": Artifact.ONNX,
        ".xml": Artifact.OPENVINO_IR,
        ".gguf": Artifact.GGUF,
    }
    if path.name == ADAPTER_WEIGHTS:
        return Artifact.LORA_ADAPTER
    if is_pickle(path.name):
        raise CheckpointError(f"{path}: pickled weights are refused, since loading them runs code; use safetensors")
    if path.suffix not in forms:
        raise CheckpointError(f"{path}: no weight file of a known form ({', '.join(sorted(forms))})")
    form = forms[path.suffix]
    return Artifact.QUANTIZED if form in _GRAPHS and is_quantized(path.name) else form


def is_pickle(name: str) -> bool:
    """Whether a file holds weights in a form that is never loaded: pickles, and what only other frameworks read."""
    return name.endswith(_PICKLES) and not name.endswith("training_args.bin")


def with_companions(weights: Iterable[str], names: Collection[str]) -> tuple[str, ...]:
    """The weight files with those that belong to them: external data of a graph, ``.bin`` of an ``.xml``, an index."""
    files = dict.fromkeys(weights)
    for name in tuple(files):
        if name.endswith(".onnx"):
            data = re.compile(re.escape(name) + r"([._]data.*)")
            files.update(dict.fromkeys(sorted(other for other in names if data.fullmatch(other))))
        elif name.endswith(".xml"):
            files[name.removesuffix(".xml") + ".bin"] = None
    return tuple(files)


def read_headers(folder: Path, weights: Iterable[str], *, index: str | None) -> dict[str, TensorEntry]:
    """The tensors of all safetensors files of a model, once every file is whole and the index agrees with them.

    :param index: the name of the shard index, where there is one.
    :raises CheckpointError: a damaged or missing file, a tensor in two files, an index that disagrees.
    """
    by_file = {name: read_safetensors_header(folder / name) for name in weights}
    if index is not None:
        _check_index(folder, index, by_file)
    return _merged(by_file)


def _merged(by_file: Mapping[str, Mapping[str, TensorEntry]]) -> dict[str, TensorEntry]:
    tensors: dict[str, TensorEntry] = {}
    for file, header in by_file.items():
        twice = sorted(set(header) & set(tensors))
        if twice:
            raise CheckpointError(f"{file}: tensor {twice[0]!r} is in another file as well")
        tensors.update(header)
    return tensors


def shard_index(names: Collection[str], base: str = "") -> str | None:
    """The name of the shard index, where the weights need one."""
    prefix = f"{base}/" if base else ""
    single, index = f"{prefix}model.safetensors", prefix + _INDEX
    return index if index in names and single not in names else None


def check_not_pointer(path: Path) -> None:
    """Refuse a file that is missing, empty, or only a pointer to the weights.

    :raises CheckpointError: which of the three it is.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(_POINTER))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not start:
        raise CheckpointError(f"{path}: is empty: copy or fetch it again")
    if start == _POINTER:
        raise CheckpointError(f"{path}: is a Git LFS pointer, not weights; fetch it with 'git lfs pull'")


def _check_index(folder: Path, index: str, by_file: Mapping[str, Mapping[str, TensorEntry]]) -> None:
    document = read_document(folder, index)
    placed = document.section("weight_map") if document else None
    if document is None or placed is None:
        raise CheckpointError(f"{folder / index}: has no 'weight_map'")
    place = PurePosixPath(index).parent
    for tensor, file in placed.values.items():
        name = (place / inside(file, document.path)).as_posix()
        if name not in by_file:
            raise CheckpointError(f"{document.path}: tensor {tensor!r} is to be in {name!r}, which is not there")
        if tensor not in by_file[name]:
            raise CheckpointError(f"{document.path}: tensor {tensor!r} is to be in {name!r}, which does not hold it")


def _adapter(names: Collection[str], prefix: str) -> tuple[str, ...] | None:
    both = (prefix + ADAPTER_CONFIG, prefix + ADAPTER_WEIGHTS)
    return (both[1],) if all(name in names for name in both) else None


def _full(names: Collection[str], prefix: str) -> tuple[str, ...] | None:
    here = sorted(
        name.removeprefix(prefix)
        for name in names
        if name.startswith(prefix) and name.endswith(".safetensors") and "/" not in name.removeprefix(prefix)
    )
    if "model.safetensors" in here:
        return (f"{prefix}model.safetensors",)
    shards = [name for name in here if _SHARD.fullmatch(name)]
    if prefix + _INDEX in names:
        return tuple(prefix + name for name in shards)
    others = [name for name in here if name not in (ADAPTER_WEIGHTS, HEAD_WEIGHTS)]
    if not others:
        return None
    return (prefix + others[0],) if len(others) == 1 else ()


def _onnx(names: Collection[str], prefix: str, *, quantized: bool) -> tuple[str, ...] | None:
    graphs = find_graphs(
        names,
        prefix,
        suffix=".onnx",
        folder="onnx",
        preferred=() if quantized else ("model.onnx",),
        quantized=quantized,
    )
    return graphs and with_companions(graphs, names)


def _openvino(names: Collection[str], prefix: str, *, quantized: bool) -> tuple[str, ...] | None:
    preferred = () if quantized else ("openvino_model.xml", "model.xml")
    graphs = find_graphs(names, prefix, suffix=".xml", folder="openvino", preferred=preferred, quantized=quantized)
    return graphs and with_companions(graphs, names)


def _quantized(names: Collection[str], prefix: str) -> tuple[str, ...] | None:
    both = [_onnx(names, prefix, quantized=True), _openvino(names, prefix, quantized=True)]
    found = [graphs for graphs in both if graphs is not None]
    return None if not found else found[0] if len(found) == 1 else ()


def _gguf(names: Collection[str], prefix: str) -> tuple[str, ...] | None:
    places = (prefix.removesuffix("/"), f"{prefix}gguf")
    files = [name for name in sorted(names) if name.endswith(".gguf") and name.rpartition("/")[0] in places]
    return None if not files else tuple(files) if len(files) == 1 else ()
