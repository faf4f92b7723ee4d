"""Merging a LoRA adapter into its base: a checkpoint of its own, computed in float32 and held against the adapter."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from vsr_core.catalog import AdapterConfig, model_folder, read_document
from vsr_core.contract import BackendId, ExportReport, ExportRequest, LoadRequest, ModelSpec, PoolingSpec
from vsr_core.errors import CheckpointError, PluginError
from vsr_core.local import (
    AdapterTarget,
    Anatomy,
    BatchRow,
    EngineOutput,
    LoraAdapter,
    RaggedBatch,
    Want,
    WantLogits,
    WantPooled,
    copy_documents,
    listed,
    new_folder,
    read_adapter,
    target_of,
)

from .adapted import AdaptableEngine
from .engine import TorchEngine
from .network import HeadedEncoder
from .networks import blueprint
from .weights import read_tensors

__all__ = ["TOLERANCE", "merge"]

TOLERANCE: Final = 1e-4
"""The largest difference of an answer that is rounding."""

_LENGTHS: Final = (1, 2, 5, 17, 40, 64)
_CONFIG: Final = "config.json"
_WEIGHTS: Final = "model.safetensors"
_SUFFIX: Final = re.compile(r"(Model|For\w+)$")
_CLASSES: Final[Mapping[AdapterTarget, str]] = {
    "sequence": "ForSequenceClassification",
    "token": "ForTokenClassification",
    "none": "Model",
}
_OTHER_HEADS: Final = ("cls.", "lm_head.", "decoder.", "score.", "classifier.", "head.", "pooler.")


def merge(request: ExportRequest) -> ExportReport:
    """Write an adapter and its base as one checkpoint, in float32, that answers as the adapter does.

    :raises CheckpointError: it is no adapter, or the files of one of the two are damaged or do not fit.
    :raises PluginError: the merged model does not answer as the adapter does, so it is not kept.
    :raises InvalidInputError: the folder cannot be made.
    """
    began = time.perf_counter()
    work = _Merge(request)
    with new_folder(request.out) as folder:
        _say(request, "merging in float32")
        work.write(folder)
        _say(request, "comparing the merged model with the adapter")
        worst = work.difference(folder)
        if not worst <= TOLERANCE:
            raise PluginError(
                f"{request.source}: the merged model differs from the adapter by {worst:.1e}, over {TOLERANCE:g}, so it is"
                " not kept; report it",
                plugin="torch",
                stage="run",
            )
        files = listed(folder)
    return ExportReport(
        folder=request.out,
        manifest=request.out / _CONFIG,
        files=files,
        layers=() if request.spec.layers is None else (request.spec.layers,),
        max_abs=worst,
        texts=len(_LENGTHS),
        seconds=time.perf_counter() - began,
    )


class _Merge:
    """A base in float32 with one adapter attached, and the tensors of both."""

    def __init__(self, request: ExportRequest) -> None:
        if request.base is None:
            raise CheckpointError(f"{request.source} is no adapter: it has no 'base' to be merged into")
        self._request = request
        self._base = request.base
        _say(request, f"reading {self._base.entry.name} and {request.source}")
        folder = model_folder(self._base.path)
        self._tensors = read_tensors(folder, self._base.spec.weights)
        self._config = _document(folder)
        network = blueprint(self._load(self._base.spec, self._base.path), self._config).build(torch.float32)
        if not isinstance(network, HeadedEncoder):
            raise CheckpointError(
                f"{request.source}: adapters of the family {self._base.spec.family!r} are not merged here"
            )
        self._anatomy: Anatomy = network.anatomy
        self._vocabulary = int(self._config["vocab_size"])
        self._adapter = self._read()
        self._engine = AdaptableEngine(network, threads=1)
        self._engine.attach(self._adapter)

    def write(self, folder: Path) -> None:
        """Write the checkpoint: the base's files, its configuration for the task, and the merged weights."""
        copy_documents(self._base.path, self._base.spec, folder)
        config = self._merged_config()
        (folder / _CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        save_file(self._merged(), folder / _WEIGHTS, metadata={"format": "pt"})

    def difference(self, folder: Path) -> float:
        """The largest difference of what the merged checkpoint and the adapter answer to sequences of many lengths."""
        spec = self._request.spec
        load = self._load(spec, folder, weights=(_WEIGHTS,))
        merged = TorchEngine(blueprint(load, _document(folder)).build(torch.float32), threads=1)
        source = np.random.default_rng(0)
        limit = min(spec.max_tokens or max(_LENGTHS), max(_LENGTHS))
        lengths = sorted({min(length, limit) for length in _LENGTHS})
        ids = [source.integers(0, self._vocabulary, length).astype(np.int32) for length in lengths]
        want: Want = WantPooled(PoolingSpec(modes=("mean",))) if self._adapter.target == "none" else WantLogits()
        pairs = zip(
            _run(self._engine, ids, want, adapter=self._adapter.key).rows, _run(merged, ids, want).rows, strict=True
        )
        return max(float(np.abs(one - other).max()) for one, other in pairs)

    def _read(self) -> LoraAdapter:
        request = self._request
        folder = model_folder(request.path)
        document = read_document(folder, "adapter_config.json")
        if document is None:
            raise CheckpointError(f"{request.source}: {folder / 'adapter_config.json'} is missing")
        target = target_of(request.spec.capabilities)
        config = AdapterConfig.read(document)
        return read_adapter(folder, config, self._anatomy, target=target, where=request.source)

    def _load(self, spec: ModelSpec, path: Path, *, weights: tuple[str, ...] | None = None) -> LoadRequest:
        shown = spec if weights is None else replace(spec, weights=weights)
        return LoadRequest(
            backend_id=BackendId("torch", self._request.entry.name), entry=self._request.entry, path=path, spec=shown
        )

    def _merged(self) -> dict[str, Tensor]:
        """The tensors of the result, named as the class with its head names them."""
        anatomy, adapter = self._anatomy, self._adapter
        prefix = anatomy.prefix if adapter.target != "none" else ""
        wanted = anatomy.head_tensors.get(adapter.target, {})
        found: dict[str, Tensor] = {}
        for key, tensor in self._tensors.items():
            name = key.removeprefix(anatomy.prefix)
            if name.startswith(_OTHER_HEADS) and name not in wanted:
                continue
            low = adapter.changes.get(name.removesuffix(".weight")) if name.endswith(".weight") else None
            value = tensor.float() if tensor.is_floating_point() else tensor
            if low is not None:
                value = value + torch.from_numpy(low.b @ low.a)
            found[_named(name, prefix, head=name in wanted)] = value.contiguous().clone()
        for name, array in adapter.head.items():
            found[_named(name, prefix, head=True)] = torch.from_numpy(array.copy())
        return found

    def _merged_config(self) -> dict[str, Any]:
        adapter, spec = self._adapter, self._request.spec
        architecture = _SUFFIX.sub("", str((self._config.get("architectures") or ["Model"])[0]))
        config = dict(self._config) | {
            "architectures": [architecture + _CLASSES[adapter.target]],
            "torch_dtype": "float32",
        }
        config.pop("dtype", None)
        if adapter.target != "none":
            labels = spec.labels or ()
            config |= {
                "id2label": {str(index): label for index, label in enumerate(labels)},
                "label2id": {label: index for index, label in enumerate(labels)},
                "problem_type": "multi_label_classification" if spec.activation == "sigmoid" else None,
            }
        return config


def _named(name: str, prefix: str, *, head: bool) -> str:
    """A pooler is within the base, whatever head asks for it; other parts of a head stand beside it."""
    return name if head and not name.startswith("pooler.") else prefix + name


def _run(engine: TorchEngine, ids: list[Any], want: Want, *, adapter: str | None = None) -> EngineOutput:
    flat = np.concatenate(ids)
    return engine.run(
        RaggedBatch(
            ids=flat,
            type_ids=np.zeros_like(flat),
            offsets=np.cumsum([0, *map(len, ids)], dtype=np.int32),
            prompt_tokens=np.zeros(len(ids), np.int32),
            rows=tuple(BatchRow(index, want, adapter=adapter) for index in range(len(ids))),
            threads=1,
        )
    )


def _document(folder: Path) -> dict[str, Any]:
    document = read_document(folder, _CONFIG)
    if document is None:
        raise CheckpointError(f"{folder / _CONFIG} is missing")
    return dict(document.values)


def _say(request: ExportRequest, what: str) -> None:
    if request.progress is not None:
        request.progress(what)
