"""What every contestant reads: one base, sets of six adapters as PEFT saves them, and the six models merged."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..contestant import Progress
from ..encoders.shapes import ModernBertShape, write_checkpoint

__all__ = ["TASKS", "Materials", "Task", "read_materials", "write_materials"]

_TARGETS = ("Wqkv", "Wo", "Wi")
_WORDS = "the quick brown fox jumps over a lazy dog and then some more of it"
TEXT_TOKENS = 64
CROWD = 16


@dataclass(frozen=True, slots=True)
class Task:
    """One task: its head, and the rank of its adapter."""

    name: str
    kind: str
    labels: int
    rank: int


TASKS = (
    Task("domain", "SEQ_CLS", 14, 32),
    Task("jailbreak", "SEQ_CLS", 2, 8),
    Task("pii", "TOKEN_CLS", 17, 16),
    Task("fact_check", "SEQ_CLS", 2, 16),
    Task("feedback", "SEQ_CLS", 4, 32),
    Task("modality", "SEQ_CLS", 3, 8),
)
"""Five heads of texts and one of tokens, ranks from 8 to 32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """Where everything is.

    :param adapters: the set of adapters by which layers they change, ``all``, ``upper`` or ``top``; each a folder a task.
    :param merged: the merged model of each task, of the set ``all``.
    :param texts: 64 tokens each.
    """

    base: str
    adapters: dict[str, dict[str, str]]
    merged: dict[str, str]
    texts: list[str]
    labels: dict[str, list[str]]


def write_materials(folder: Path, shape: ModernBertShape, *, progress: Progress) -> Path:
    """Write all of it into a folder; returns the file that says where it is."""
    progress("writing the base")
    base = write_checkpoint(folder / "base", shape)
    layers = {
        "all": None,
        "upper": range(shape.layers // 2, shape.layers),
        "top": range(shape.layers - 1, shape.layers),
    }
    adapters: dict[str, dict[str, str]] = {}
    for name, chosen in layers.items():
        adapters[name] = {}
        for number, task in enumerate(TASKS):
            progress(f"writing the adapter {task.name}, {name} layers")
            target = folder / name / task.name
            _write_adapter(base, target, task, layers=None if chosen is None else list(chosen), seed=number)
            adapters[name][task.name] = str(target)
    merged = _merge(folder, base, adapters["all"], progress)
    labels = {task.name: _labels(task) for task in TASKS}
    materials = Materials(base=str(base), adapters=adapters, merged=merged, texts=_texts(base), labels=labels)
    file = folder / "materials.json"
    file.write_text(json.dumps(asdict(materials)), encoding="utf-8")
    return file


def read_materials(file: Path) -> Materials:
    """Read what :func:`write_materials` wrote."""
    return Materials(**json.loads(file.read_text(encoding="utf-8")))


def _write_adapter(base: Path, target: Path, task: Task, *, layers: Sequence[int] | None, seed: int) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification
    from transformers.utils import logging

    logging.set_verbosity(40)  # errors
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.manual_seed(seed)
    classes = {"SEQ_CLS": AutoModelForSequenceClassification, "TOKEN_CLS": AutoModelForTokenClassification}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = classes[task.kind].from_pretrained(base, num_labels=task.labels, dtype=torch.float32)
        config = LoraConfig(
            r=task.rank,
            lora_alpha=2 * task.rank,
            target_modules=list(_TARGETS),
            task_type=task.kind,
            layers_to_transform=None if layers is None else list(layers),
            modules_to_save=["classifier", "head"],
        )
        model = get_peft_model(plain, config)
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                torch.nn.init.normal_(parameter, std=0.02)
        model.save_pretrained(str(target))
    (target / "labels.json").write_text(json.dumps(_labels(task)), encoding="utf-8")


def _labels(task: Task) -> list[str]:
    if task.kind == "TOKEN_CLS":
        return ["O", *(f"{mark}-{number}" for number in range(task.labels // 2) for mark in "BI")]
    return [f"{task.name}-{number}" for number in range(task.labels)]


def _merge(folder: Path, base: Path, adapters: dict[str, str], progress: Progress) -> dict[str, str]:
    from vsr_core import Runtime

    catalog: dict[str, object] = {"base": {"source": str(base), "backends": ["torch"]}}
    catalog |= {name: {"base": "base", "adapter": path, "backends": ["torch"]} for name, path in adapters.items()}
    merged = {}
    (folder / "merged").mkdir()
    with Runtime({"catalog": catalog}) as runtime:
        for name in adapters:
            progress(f"merging {name}")
            merged[name] = str(runtime.merge(f"torch:{name}", out=folder / "merged" / name).folder)
    return merged


def _texts(base: Path) -> list[str]:
    """Different texts of exactly 64 tokens, special ones included."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    words = _WORDS.split()
    texts = []
    for number in range(CROWD):
        text = words[number % len(words)]
        while len(tokenizer.encode(longer := f"{text} {words[(number + len(text)) % len(words)]}").ids) <= TEXT_TOKENS:
            text = longer
        texts.append(text)
    return texts
