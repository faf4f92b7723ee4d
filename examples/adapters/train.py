"""Train the adapters of this folder, score them on texts written apart, and describe them.

Run ``python examples/adapters/train.py`` for all, or name tasks. An adapter that does not beat its baselines is not written.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from training.cards import describe, update_table
from training.data import Dataset, held_out, read_dataset
from training.encoding import encode
from training.learning import learn
from training.model import adapted, base_folder, read_back, round_to_half, save, tokenizer_of
from training.overlap import find_overlaps
from training.scoring import Result, logits_on, score
from training.tasks import TASKS, Task

HERE = Path(__file__).parent
SAME = 1e-4
"""How far the logits of a saved adapter may be from those of the trained one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what the command line names; 1 where an adapter does not beat its baselines."""
    options = _options(arguments)
    torch.set_num_threads(options.threads)
    console, worst = Console(), 0
    for name in options.tasks or TASKS:
        task = TASKS[name]
        dataset = read_dataset(task, options.seed)
        _refuse_overlaps(task, dataset)
        if options.select:
            learned, kept = held_out(dataset.train, options.seed)
            dataset = Dataset(tuple(learned), tuple(kept))
        out = None if options.select else options.out / name
        worst = max(worst, _make(task, dataset, seed=options.seed, out=out, console=console))
    if not options.select and (options.out / "README.md").is_file():
        update_table(options.out / "README.md", options.out)
    return worst


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "tasks", nargs="*", choices=[[], *TASKS], metavar="TASK", help=f"of {', '.join(TASKS)}; default: all"
    )
    parser.add_argument("--out", type=Path, default=HERE, help="where the folders of the adapters go")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--select",
        action="store_true",
        help="score on a fifth of the training groups held out, to choose settings; the test is not read, nothing is written",
    )
    return parser.parse_args(arguments)


def _make(task: Task, dataset: Dataset, *, seed: int, out: Path | None, console: Console) -> int:
    base, begun = base_folder(), time.monotonic()
    torch.manual_seed(seed)
    model = adapted(task, base)
    taught = encode(task, tokenizer_of(base), dataset.train, max_tokens=task.settings.max_tokens)
    learn(task, model, taught, seed=seed, console=console)
    round_to_half(model)
    seconds = round(time.monotonic() - begun)
    logits = logits_on(task, model, base, dataset.test)
    result = score(task, logits, base=base, train=dataset.train, test=dataset.test)
    console.print(_summary(task, result, seconds), highlight=False)
    if out is None:
        return 0
    if not result.beats_the_baselines:
        console.print(f"{task.name}: does not beat its baselines, not written", style="red")
        return 1
    save(model, out)
    apart = max(
        (one - other).abs().max().item()
        for one, other in zip(logits, logits_on(task, read_back(task, base, out), base, dataset.test), strict=True)
    )
    if apart > SAME:
        raise RuntimeError(f"{task.name}: what was saved answers differently, by {apart:.2g} in a logit")
    describe(task, result, {"seed": seed, "seconds": seconds, "texts": len(dataset.train)}, out)
    return 0


def _refuse_overlaps(task: Task, dataset: Dataset) -> None:
    overlaps = find_overlaps(dataset.train, dataset.test)
    if overlaps:
        listed = "\n".join(f"  {one.test!r} and {one.train!r} ({one.share:.0%})" for one in overlaps)
        raise SystemExit(f"{task.name}: test texts that are in the training texts, or nearly:\n{listed}")


def _summary(task: Task, result: Result, seconds: int) -> str:
    own = result.adapter
    return (
        f"{task.name}: {own.metric} {own.value:.3f} ({own.low:.3f} to {own.high:.3f}) on {own.n} texts; "
        f"prototype {result.prototype.value:.3f}, majority {result.majority.value:.3f}; {seconds} s\n"
        + ", ".join(f"{label} {value:.2f}" for label, value in result.by_label.items())
    )


if __name__ == "__main__":
    sys.exit(main())
