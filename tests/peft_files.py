"""LoRA adapters on tiny bases, made and saved by PEFT itself, and the model that PEFT makes of them."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from safetensors.numpy import load_file, save_file
from transformers import AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification
from transformers.utils import logging

__all__ = ["Trained", "edit_config", "edit_tensors", "train"]

_CLASSES = {
    "SEQ_CLS": AutoModelForSequenceClassification,
    "TOKEN_CLS": AutoModelForTokenClassification,
    "FEATURE_EXTRACTION": AutoModel,
}


@dataclass(frozen=True)
class Trained:
    """An adapter as PEFT saved it, and the model that saved it."""

    folder: Path
    model: Any = field(repr=False)

    def answer(self, ids: np.ndarray, types: np.ndarray | None = None) -> np.ndarray:
        """What the model says to one sequence: logits, or the token vectors of a model without a head."""
        with torch.inference_mode():
            given = torch.from_numpy(ids.astype(np.int64))[None]
            typed = {} if types is None else {"token_type_ids": torch.from_numpy(types.astype(np.int64))[None]}
            found = self.model(input_ids=given, attention_mask=torch.ones_like(given), **typed)
        return (found.logits if "logits" in found else found.last_hidden_state)[0].numpy()


def train(base: Path, folder: Path, task: str, *, labels=("a", "b", "c"), seed: int = 1, **settings: Any) -> Trained:
    """An adapter with random weights, B among them, saved with its labels as ``labels.json``."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(seed)
    heads = {} if task == "FEATURE_EXTRACTION" else {"num_labels": len(labels), "ignore_mismatched_sizes": True}
    plain = _CLASSES[task].from_pretrained(base, attn_implementation="eager", dtype=torch.float32, **heads)
    config = LoraConfig(**{"r": 3, "lora_alpha": 5, "target_modules": "all-linear", "task_type": task, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = get_peft_model(plain, config).eval()
        for name, parameter in model.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                torch.nn.init.normal_(parameter, std=0.15)
        model.save_pretrained(folder)
    if heads:
        (folder / "labels.json").write_text(json.dumps(list(labels)))
    return Trained(folder, model)


def edit_config(folder: Path, **changes: Any) -> Path:
    """Change what ``adapter_config.json`` says."""
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return folder


def edit_tensors(folder: Path, edit: Any) -> Path:
    """Replace the tensors of an adapter by what ``edit`` makes of them."""
    file = folder / "adapter_model.safetensors"
    save_file(edit(load_file(file)), file)
    return folder
