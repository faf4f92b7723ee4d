"""From what a caller asks to have exported to what an exporter is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ..contract import AdapterBase, BackendDescriptor, BackendId, ExportProgress, ExportRequest, ModelSpec, Quantization
from ..errors import InvalidInputError, ModelNotFoundError

if TYPE_CHECKING:
    from .core import RuntimeCore

__all__ = ["export_order", "merge_order"]


def export_order(
    core: RuntimeCore,
    model: str,
    *,
    to: str,
    out: Path,
    layers: Sequence[int],
    quantize: Quantization | None,
    progress: ExportProgress | None,
) -> tuple[BackendDescriptor, ExportRequest]:
    """The backend whose exporter is to run, and what to tell it; fetches the model's files.

    :raises InvalidInputError: a wrong argument.
    :raises ModelNotFoundError: there is no such model or backend.
    :raises CheckpointError: the model's files cannot be had, are damaged or contradict the catalog entry.
    """
    descriptor = _descriptor(core, to)
    if quantize is not None and quantize not in get_args(Quantization):
        raise InvalidInputError(f"quantize must be 'int8' or left out, not {quantize!r}", param="quantize")
    folder = _check_out(out)
    if progress is not None:
        progress(f"reading {model}")
    located = core.sources.locate(_source_id(core, model, to))
    return descriptor, ExportRequest(
        source=model,
        path=located.path,
        entry=located.entry,
        spec=located.spec,
        out=folder,
        layers=_exits(located.spec, layers),
        quantize=quantize,
        progress=progress,
    )


def merge_order(
    core: RuntimeCore, model: str, *, out: Path, progress: ExportProgress | None
) -> tuple[BackendDescriptor, ExportRequest]:
    """The backend that is to merge an adapter into its base, and what to tell it; fetches the files of both.

    :raises InvalidInputError: a wrong argument, a model that is no adapter, or a backend that merges none.
    :raises ModelNotFoundError: there is no such model.
    :raises CheckpointError: files cannot be had, are damaged or contradict the catalog entry.
    """
    descriptor = _merging(core, model)
    folder = _check_out(out)
    source = _source_id(core, model, descriptor.name)
    base = core.sources.base_of(source)
    if base is None:
        raise InvalidInputError(
            f"{model!r} is no adapter: only what has a 'base' in the catalog is merged", param="model"
        )
    if progress is not None:
        progress(f"reading {base.model} and {model}")
    under, located = core.sources.locate(base), core.sources.locate(source)
    return descriptor, ExportRequest(
        source=model,
        path=located.path,
        entry=located.entry,
        spec=located.spec,
        out=folder,
        layers=(),
        base=AdapterBase(path=under.path, entry=under.entry, spec=under.spec),
        progress=progress,
    )


def _merging(core: RuntimeCore, model: str) -> BackendDescriptor:
    """The backend a name states, or else the first one that merges."""
    merging = {name: each.descriptor for name, each in sorted(core.host.backends.items()) if each.descriptor.merger}
    if ":" not in model:
        if not merging:
            raise InvalidInputError("no installed backend merges adapters; install vsr-candle-torch", param="model")
        return next(iter(merging.values()))
    stated = core.instances.descriptor(BackendId.parse(model).backend)
    if stated.merger is None:
        others = ", ".join(merging) or "none that is installed; install vsr-candle-torch"
        raise InvalidInputError(
            f"the backend {stated.name!r} merges no adapters; those that do: {others}", param="model"
        )
    return stated


def _descriptor(core: RuntimeCore, to: str) -> BackendDescriptor:
    descriptor = core.instances.descriptor(to)
    if descriptor.exporter is None:
        offered = sorted(name for name, each in core.host.backends.items() if each.descriptor.exporter is not None)
        others = ", ".join(offered) or "none that is installed; install vsr-onnx or vsr-openvino"
        raise InvalidInputError(f"the backend {to!r} exports no models; those that do: {others}", param="to")
    return descriptor


def _source_id(core: RuntimeCore, model: str, to: str) -> BackendId:
    """The id of the model to read; a plain name is that of a catalog entry, whichever backends serve it."""
    if ":" in model:
        source = BackendId.parse(model)
        core.instances.settings(source.backend)
        return source
    if model not in core.catalog:
        listed = ", ".join(core.catalog) or "none"
        raise ModelNotFoundError(f"the catalog has no model called {model!r}; it has {listed}", name=model)
    return BackendId(to, model)


def _exits(spec: ModelSpec, layers: Sequence[int]) -> tuple[int, ...]:
    wrong = [layer for layer in layers if layer < 1 or (spec.layers is not None and layer > spec.layers)]
    if wrong:
        raise InvalidInputError(
            f"layers: {', '.join(map(str, wrong))} are not among the model's {spec.layers} layers", param="layers"
        )
    return tuple(sorted({*spec.exit_layers, *layers}))


def _check_out(out: Path) -> Path:
    """The folder to make, absolute.

    :raises InvalidInputError: there is something in its place, or nothing to make it in.
    """
    folder = out.absolute()
    problem = None
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        problem = "it is there already and is no folder"
    elif folder.is_dir() and any(folder.iterdir()):
        problem = "the folder is not empty; name one that does not exist"
    elif not folder.parent.is_dir():
        problem = f"there is no folder {str(folder.parent)!r} to make it in"
    if problem is not None:
        raise InvalidInputError(f"{str(out)!r} cannot be written: {problem}", param="out")
    return folder
