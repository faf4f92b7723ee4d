"""The training of one adapter."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from peft import PeftModel
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch.nn.functional import cross_entropy

from .encoding import IGNORED, Encoded, batches, pad
from .model import trained_parameters
from .tasks import Task

__all__ = ["learn"]

WARM_UP = 0.1
"""The share of steps in which the learning rate rises; from there it falls to 0 in a straight line."""


def learn(task: Task, model: PeftModel, encoded: Sequence[Encoded], *, seed: int, console: Console) -> None:
    """Train the adapter and head of a model in place, with the progress on a console."""
    settings, chance = task.settings, random.Random(seed)
    parameters = trained_parameters(model)
    optimizer = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=0.01)
    steps = settings.epochs * -(-len(encoded) // settings.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step / steps))
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    model.train()
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(task.name, total=steps)
        for epoch in range(1, settings.epochs + 1):
            losses = []
            for batch in batches(encoded, settings.batch, chance):
                inputs, targets = pad(batch)
                logits = model(**inputs).logits
                loss = cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                progress.advance(bar)
            console.print(f"{task.name}: epoch {epoch} of {settings.epochs}, loss {sum(losses) / len(losses):.4f}")
    model.eval()


def _rate(share: float) -> float:
    return share / WARM_UP if share < WARM_UP else max(0.0, (1 - share) / (1 - WARM_UP))
