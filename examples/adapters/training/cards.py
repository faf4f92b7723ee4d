"""What is written beside an adapter: its labels, its scores, its model card, and the table of all."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .model import PACKAGE
from .scoring import Result
from .tasks import BASE_NAME, TASKS, Task

__all__ = ["Run", "describe", "update_table"]

_PACKAGES = ("torch", "transformers", "peft", "tokenizers", "safetensors")
_BEGIN, _END = "<!-- scores -->", "<!-- end of scores -->"

Run = Mapping[str, int | float]
"""How the training went: ``seed``, ``seconds``, ``texts``."""


def describe(task: Task, result: Result, run: Run, folder: Path) -> None:
    """Write ``labels.json``, ``scores.json`` and ``README.md`` of an adapter."""
    scores = _scores(task, result, run)
    for name, content in (("labels.json", list(task.outputs)), ("scores.json", scores)):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(_card(task, scores), encoding="utf-8")


def update_table(readme: Path, folder: Path) -> None:
    """Put the scores of all adapters in a folder into the table of the README."""
    before, _, rest = readme.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = [
        _row(json.loads(path.read_text(encoding="utf-8")))
        for name in TASKS
        if (path := folder / name / "scores.json").is_file()
    ]
    head = "| task | metric | score | 95 % interval | nearest prototype | majority | test texts |\n| --- | --- | --- | --- | --- | --- | --- |"
    readme.write_text("\n".join([before + _BEGIN, "", head, *rows, "", _END + after]), encoding="utf-8")


def _scores(task: Task, result: Result, run: Run) -> dict[str, Any]:
    score, settings = result.adapter, task.settings
    return {
        "task": task.name,
        "metric": score.metric,
        "score": round(score.value, 4),
        "low": round(score.low, 4),
        "high": round(score.high, 4),
        "confidence": 0.95,
        "interval": score.interval,
        "n": score.n,
        "baselines": {"majority": round(result.majority.value, 4), "prototype": round(result.prototype.value, 4)},
        "per_label": {name: round(value, 4) for name, value in result.by_label.items()},
        "base": {"name": BASE_NAME, "package": f"{PACKAGE.replace('_', '-')}=={version(PACKAGE)}"},
        "seed": run["seed"],
        "training": {
            "texts": run["texts"],
            "epochs": settings.epochs,
            "rank": settings.rank,
            "layers": list(settings.layers),
            "seconds": run["seconds"],
        },
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
    }


def _row(scores: Mapping[str, Any]) -> str:
    numbers = f"{scores['score']:.3f} | {scores['low']:.3f} to {scores['high']:.3f}"
    others = f"{scores['baselines']['prototype']:.3f} | {scores['baselines']['majority']:.3f}"
    return f"| [{scores['task']}]({scores['task']}/README.md) | {_METRICS[scores['metric']]} | {numbers} | {others} | {scores['n']} |"


_METRICS = {"accuracy": "accuracy", "entity_f1": "F1 of entities"}


def _card(task: Task, scores: Mapping[str, Any]) -> str:
    settings, per_label = task.settings, scores["per_label"]
    part = "F1" if task.kind == "tokens" else "recall"
    layers = (
        "all six layers"
        if len(settings.layers) == 6
        else f"layers {settings.layers[0]} to {settings.layers[-1]} (of 0 to 5)"
    )
    head = "token classification (BIO)" if task.kind == "tokens" else "sequence classification"
    how = (
        "Exact match of start, end and label; the interval is a percentile bootstrap over the texts."
        if task.kind == "tokens"
        else "The interval is Wilson's."
    )
    return f"""---
base_model: {BASE_NAME}
library_name: peft
license: apache-2.0
---

# {task.name}

{task.about}

- Base: `{BASE_NAME}`, {head}
- LoRA of rank {settings.rank} (alpha {settings.alpha}) on the query, key, value and dense layers of {layers}
- Labels, in index order in `labels.json`: {", ".join(f"`{label}`" for label in task.labels)}
- Tensors are saved as float16; the pooler of the head, where there is one, is the base's

## Data

{task.data} {scores["training"]["texts"]} texts to learn from. The {scores["n"]} texts of the test were written by hand and apart; no test text equals or
nearly equals one that was learned from, which the training script checks, and none was used to choose settings.

## Scores

{_METRICS[scores["metric"]].capitalize()} {scores["score"]:.3f}, 95 % interval {scores["low"]:.3f} to {scores["high"]:.3f}, on {scores["n"]} texts. {how}
On the same texts the commonest label scores {scores["baselines"]["majority"]:.3f}, and the nearest mean vector of the base per label {scores["baselines"]["prototype"]:.3f}.

| label | {part} |
| --- | --- |
{chr(10).join(f"| `{label}` | {per_label[label]:.3f} |" for label in task.labels)}

## Limits

- English, with a little German, French and Spanish; short texts as users type them.
- The test is small and was written by few people: expect a lower score on the texts of others.
{chr(10).join(f"- {limit}" for limit in task.limits)}
"""
