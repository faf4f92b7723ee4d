"""The files of one model, found and read once: which weights are meant, and the documents beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import CheckpointError
from ..taxonomy import Artifact
from .adapter_settings import adapter_problems
from .documents import Document, list_files, model_folder, read_document
from .gguf_header import gguf_config, gguf_dtype, read_gguf_header
from .graphs import is_graph, lonely_graphs
from .manifest import HEAD_WEIGHTS, MANIFEST, ExportManifest, read_manifest
from .safetensors_header import TensorEntry, dominant_dtype
from .sentence_transformers import SentenceTransformer, read_sentence_transformer
from .weights import (
    ADAPTER_CONFIG,
    artifact_of_file,
    available,
    check_not_pointer,
    is_pickle,
    read_headers,
    shard_index,
    with_companions,
)

__all__ = ["ADAPTER_LABELS", "Contents", "read_contents"]

ADAPTER_LABELS = "labels.json"
"""Where an adapter of this product keeps the names of its labels."""

_PARTS = frozenset(
    {
        "added_tokens.json",
        "chat_template.jinja",
        "chat_template.json",
        "config.json",
        "generation_config.json",
        "lora_config.json",
        "merges.txt",
        "preprocessor_config.json",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
        "vocab.json",
        "vocab.txt",
        ADAPTER_CONFIG,
    }
)
"""Files that decide what a model answers, whichever form its weights have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """A model's files.

    :param names: every file of the folder and of the folders in it, relative.
    :param prefix: ``""``, or the subfolder of the transformer with a slash.
    :param forms: the forms of weights there are; ``form`` is the one meant, ``weights`` its files.
    :param tensors: the header of safetensors weights.
    :param config: ``config.json``, or what the header of a GGUF file says in its terms.
    :param adapter: ``adapter_config.json`` of a LoRA adapter.
    :param manifest: of a graph that was exported by this product.
    """

    folder: Path
    names: frozenset[str]
    prefix: str
    sentence: SentenceTransformer | None
    forms: tuple[Artifact, ...]
    form: Artifact | None
    weights: tuple[str, ...]
    config: Document | None
    tokenizer: Document | None
    tensors: dict[str, TensorEntry]
    stored_dtype: str | None = None
    adapter: Document | None = None
    manifest: ExportManifest | None = None
    index: str | None = None
    refusals: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """All files the model is made of, sorted: weights, configuration, tokenizer, label maps."""
        parts = {name for name in self.names if name.removeprefix(self.prefix) in _PARTS or name in _PARTS}
        parts.update(self.label_files, self.weights, self.sentence.files if self.sentence is not None else ())
        parts.update(name for name in (self.index, *self._exported) if name is not None)
        return tuple(sorted(parts))

    @property
    def _exported(self) -> tuple[str, ...]:
        if self.manifest is None:
            return ()
        return (MANIFEST,) if self.manifest.head is None else (MANIFEST, HEAD_WEIGHTS)

    @property
    def label_files(self) -> tuple[str, ...]:
        """The label maps in the folder, sorted; beside an adapter, whose configuration has none, ``labels.json`` too."""
        alone = {ADAPTER_LABELS} if self.adapter is not None else set()
        maps = {name for name in self.names if name.endswith("_mapping.json") and "/" not in name}
        return tuple(sorted(maps | (alone & self.names)))


def read_contents(path: Path, stated: Artifact | None) -> Contents:
    """Find and read the files of a model.

    :param path: the model's folder, or one weight file in it.
    :param stated: which form of the weights is meant, where there are several.
    :raises CheckpointError: files that are missing, damaged or malformed.
    """
    if not path.exists():
        raise CheckpointError(f"{path}: there is no such file or folder")
    folder = model_folder(path)
    names = list_files(folder)
    sentence = read_sentence_transformer(folder)
    base = sentence.base if sentence is not None else ""
    prefix = f"{base}/" if base else ""
    refusals: list[str] = []
    if path.is_dir():
        offered = available(names, base)
    else:
        name = path.relative_to(folder).as_posix()
        offered = {artifact_of_file(path): with_companions((name,), names)}
    form = _choose(folder, names, offered, stated, refusals=refusals)
    contents = Contents(
        folder=folder,
        names=names,
        prefix=prefix,
        sentence=sentence,
        forms=tuple(offered),
        form=form,
        weights=offered[form] if form is not None else (),
        config=read_document(folder, f"{prefix}config.json"),
        tokenizer=read_document(folder, f"{prefix}tokenizer_config.json"),
        tensors={},
        refusals=tuple(refusals),
    )
    return _with_weights(contents, base)


def _choose(
    folder: Path,
    names: frozenset[str],
    offered: dict[Artifact, tuple[str, ...]],
    stated: Artifact | None,
    *,
    refusals: list[str],
) -> Artifact | None:
    form = stated if stated in offered else next(iter(offered), None)
    pickles = sorted(name for name in names if is_pickle(name))
    lacks = form is None or (stated is Artifact.OPENVINO_IR and form is not stated)
    if lacks and (bare := lonely_graphs(names)):
        refusals.append(_lonely(bare[0]))
    elif form is None and pickles:
        refusals.append(
            f"the only weights are pickled ({', '.join(pickles[:3])}), and loading those would run code; "
            "convert them to safetensors"
        )
    elif form is None:
        refusals.append(f"{folder} holds no weights (.safetensors, .onnx, .xml with .bin, .gguf)")
    elif not offered[form]:
        refusals.append(f"{folder} holds several {form} weights; name the file to load in the source")
    return form


def _lonely(graph: str) -> str:
    lacking = f"{graph.removesuffix('.xml')}.bin"
    return f"{graph} has its weights in {lacking}, which is missing: copy it too, or export the model again"


def _with_weights(contents: Contents, base: str) -> Contents:
    """Read the headers of the weights; what they say goes before what ``config.json`` says."""
    for name in lonely_graphs(contents.names):
        if name in contents.weights:
            return replace(contents, refusals=(*contents.refusals, _lonely(name)))
    for name in contents.weights:
        check_not_pointer(contents.folder / name)
    if contents.form is Artifact.GGUF and contents.weights:
        path = contents.folder / contents.weights[0]
        header = read_gguf_header(path)
        return replace(contents, config=Document(path, gguf_config(header)), stored_dtype=gguf_dtype(header))
    if contents.weights and is_graph(contents.weights[0]):
        return _with_manifest(contents)
    if contents.form not in (Artifact.FULL, Artifact.LORA_ADAPTER) or not contents.weights:
        return contents
    index = shard_index(contents.names, base) if contents.form is Artifact.FULL else None
    tensors = read_headers(contents.folder, contents.weights, index=index)
    contents = replace(contents, tensors=tensors, stored_dtype=dominant_dtype(tensors.values()), index=index)
    if contents.form is Artifact.LORA_ADAPTER:
        return _with_adapter(contents)
    return replace(contents, form=_form_of_whole(contents))


def _with_manifest(contents: Contents) -> Contents:
    """What the manifest says of the graph, where there is one and the graph is the one it was written for."""
    manifest = read_manifest(contents.folder)
    if manifest is None:
        return contents
    missing = sorted(name for name in manifest.files if not (contents.folder / name).is_file())
    if missing:
        refusal = (
            f"{MANIFEST} lists {missing[0]}, which is missing: copy it too, or export the model again into an empty "
            "folder"
        )
        return replace(contents, manifest=manifest, refusals=(*contents.refusals, refusal))
    others = [name for name in contents.weights if name not in manifest.files]
    if others:
        refusal = (
            f"{MANIFEST} does not list {others[0]}: files of two exports are mixed; "
            "export the model again into an empty folder"
        )
        return replace(contents, refusals=(*contents.refusals, refusal))
    form = contents.form if manifest.quantization is None else Artifact.QUANTIZED
    return replace(contents, manifest=manifest, form=form, stored_dtype=manifest.dtype)


def _with_adapter(contents: Contents) -> Contents:
    config = read_document(contents.folder, contents.prefix + ADAPTER_CONFIG)
    if config is None:
        raise CheckpointError(f"{contents.folder / contents.weights[0]}: has no {ADAPTER_CONFIG} beside it")
    return replace(contents, adapter=config, refusals=(*contents.refusals, *adapter_problems(config)))


def _form_of_whole(contents: Contents) -> Artifact:
    if contents.config is not None and contents.config.section("quantization_config") is not None:
        return Artifact.QUANTIZED
    merged = f"{contents.prefix}lora_config.json" in contents.names
    return Artifact.MERGED_LORA if merged else Artifact.FULL
