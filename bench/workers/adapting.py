"""Worker: six tasks on one text, by merged models or by adapters on one base; through vsr, transformers or PEFT."""

from __future__ import annotations

import argparse
import os
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..adapters.materials import CROWD, TASKS, Materials, read_materials
from ..gauges import Stopwatch, peak_bytes, reset_peak, resident_bytes
from ..machine import installed_versions
from ..protocol import Ask, Done, ForwardTimes, Loaded, Prepared, Reply, RunTime, SingleTimes, SubjectFacts
from ..serving import serve_session

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["main"]

_FIRST = TASKS[0].name
_WARM = 3


class Serving(ABC):
    """Six tasks, loaded one way or another."""

    @abstractmethod
    def one(self, text: str) -> None:
        """Answer the first task."""

    @abstractmethod
    def all(self, text: str) -> None:
        """Answer every task."""

    @abstractmethod
    def logits(self, text: str) -> dict[str, npt.NDArray[np.float32]]:
        """The raw numbers of every task whose head is of texts."""

    @abstractmethod
    def facts(self) -> SubjectFacts:
        """What it runs on."""

    def crowd(self, texts: list[str]) -> None:
        """Answer every task for every text, asked at the same time."""
        with ThreadPoolExecutor(len(texts)) as callers:
            list(callers.map(self.all, texts))


class VsrServing(Serving):
    """The facade of vsr, with adapters of a set or with merged models."""

    def __init__(self, materials: Materials, precision: str, *, layers: str | None) -> None:
        from vsr_core import Runtime

        catalog: dict[str, Any] = {}
        if layers is None:
            catalog = {
                name: {"source": path, "labels": materials.labels[name]} for name, path in materials.merged.items()
            }
        else:
            catalog["base"] = {"source": materials.base}
            catalog |= {name: {"base": "base", "adapter": path} for name, path in materials.adapters[layers].items()}
        self._precision = precision
        self._runtime = Runtime(
            {
                "catalog": {name: entry | {"backends": ["torch"]} for name, entry in catalog.items()},
                "backends": {"torch": {"precision": precision}},
            }
        )
        self._together = layers is not None
        for task in TASKS:
            self._runtime.load(f"torch:{task.name}")

    def one(self, text: str) -> None:
        self._runtime.classify(text, model=_FIRST)

    def all(self, text: str) -> None:
        if self._together:
            self._runtime.classify_all(text, tasks=[task.name for task in TASKS])
            return
        for task in TASKS:
            if task.kind == "TOKEN_CLS":
                self._runtime.tag(text, model=task.name)
            else:
                self._runtime.classify(text, model=task.name)

    def logits(self, text: str) -> dict[str, npt.NDArray[np.float32]]:
        import numpy as np

        found = {}
        for task in (task for task in TASKS if task.kind == "SEQ_CLS"):
            result = self._runtime.classify(text, model=task.name, logits=True).results[0]
            found[task.name] = np.asarray(result.logits, np.float32)
        return found

    def facts(self) -> SubjectFacts:
        return SubjectFacts(dtype=self._precision, versions=installed_versions("vsr-candle-torch", "vsr-core", "torch"))


class TransformersServing(Serving):
    """Six models of transformers, one after the other; one call at a time, as they share the processors."""

    def __init__(self, materials: Materials, precision: str) -> None:
        self._torch, self._tokenizer, dtype = _transformers(materials.base, precision)
        from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

        classes = {"SEQ_CLS": AutoModelForSequenceClassification, "TOKEN_CLS": AutoModelForTokenClassification}
        self._precision = precision
        self._models = {
            task.name: classes[task.kind].from_pretrained(materials.merged[task.name], dtype=dtype).eval()
            for task in TASKS
        }

    def one(self, text: str) -> None:
        self._answer(_FIRST, self._tokenizer(text, return_tensors="pt"))

    def all(self, text: str) -> None:
        read = self._tokenizer(text, return_tensors="pt")
        for name in self._models:
            self._answer(name, read)

    def crowd(self, texts: list[str]) -> None:
        read = self._tokenizer(texts, return_tensors="pt", padding=True)
        for name in self._models:
            self._answer(name, read)

    def logits(self, text: str) -> dict[str, npt.NDArray[np.float32]]:
        read = self._tokenizer(text, return_tensors="pt")
        names = [task.name for task in TASKS if task.kind == "SEQ_CLS"]
        return {name: self._answer(name, read)[0].float().numpy() for name in names}

    def facts(self) -> SubjectFacts:
        return SubjectFacts(dtype=self._precision, versions=installed_versions("transformers", "torch"))

    def _answer(self, name: str, read: Any) -> Any:
        with self._torch.inference_mode():
            return self._models[name](**{key: read[key] for key in ("input_ids", "attention_mask")}).logits


class PeftServing(Serving):
    """One base with PEFT's own layers, and the heads beside it, since PEFT holds no heads of different sizes.

    :param mixed: whether all tasks are one batch with an adapter for each row, or one after the other.
    """

    def __init__(self, materials: Materials, precision: str, *, mixed: bool) -> None:
        self._torch, self._tokenizer, dtype = _transformers(materials.base, precision)
        from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
        from safetensors.torch import load_file
        from transformers import AutoModel

        self._precision, self._mixed = precision, mixed
        model = AutoModel.from_pretrained(materials.base, dtype=dtype).eval()
        self._heads: dict[str, dict[str, Any]] = {}
        peft: Any = None
        for task in TASKS:
            folder = Path(materials.adapters["all"][task.name])
            config = LoraConfig.from_pretrained(str(folder))
            config.task_type, config.modules_to_save, config.inference_mode = "FEATURE_EXTRACTION", None, True
            tensors = load_file(folder / "adapter_model.safetensors")
            if peft is None:
                peft = get_peft_model(model, config, adapter_name=task.name)
            else:
                peft.add_adapter(task.name, config)
            lora = {key.replace("model.model.", "model."): value for key, value in tensors.items() if "lora_" in key}
            set_peft_model_state_dict(peft, lora, adapter_name=task.name)
            self._heads[task.name] = {
                key.removeprefix("base_model.model."): value.float()
                for key, value in tensors.items()
                if "lora_" not in key
            }
        self._model = peft.to(dtype).eval()

    def one(self, text: str) -> None:
        self._model.set_adapter(_FIRST)
        read = self._tokenizer(text, return_tensors="pt")
        self._head(_FIRST, self._states(read))

    def all(self, text: str) -> None:
        self._texts([text])

    def crowd(self, texts: list[str]) -> None:
        self._texts(texts)

    def _texts(self, texts: list[str]) -> dict[str, Any]:
        torch, read = self._torch, self._tokenizer(texts, return_tensors="pt", padding=True)
        names = list(self._heads)
        if not self._mixed:
            found = {}
            for name in names:
                self._model.set_adapter(name)
                found[name] = self._head(name, self._states(read))
            return found
        rows = {key: read[key].repeat(len(names), 1) for key in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            states = self._model(**rows, adapter_names=[name for name in names for _ in texts]).last_hidden_state
        parts = states.split(len(texts))
        return {name: self._head(name, part) for name, part in zip(names, parts, strict=True)}

    def logits(self, text: str) -> dict[str, npt.NDArray[np.float32]]:
        found = self._texts([text])
        return {task.name: found[task.name][0].numpy() for task in TASKS if task.kind == "SEQ_CLS"}

    def facts(self) -> SubjectFacts:
        return SubjectFacts(dtype=self._precision, versions=installed_versions("peft", "transformers", "torch"))

    def _states(self, read: Any) -> Any:
        with self._torch.inference_mode():
            return self._model(**{key: read[key] for key in ("input_ids", "attention_mask")}).last_hidden_state

    def _head(self, name: str, states: Any) -> Any:
        """Mean of the tokens or each of them, dense, gelu, norm, classifier; every text has as many tokens here."""
        functional, head = self._torch.nn.functional, self._heads[name]
        token = next(task for task in TASKS if task.name == name).kind == "TOKEN_CLS"
        x = states.float() if token else states.float().mean(1)
        x = functional.gelu(functional.linear(x, head["head.dense.weight"]))
        x = functional.layer_norm(x, x.shape[-1:], head["head.norm.weight"])
        return functional.linear(x, head["classifier.weight"], head["classifier.bias"])


def _transformers(base: str, precision: str) -> tuple[Any, Any, Any]:
    import torch
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.set_verbosity(40)  # errors
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    tokenizer = PreTrainedTokenizerFast.from_pretrained(base)
    return torch, tokenizer, {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]


class Session:
    """Answers the benchmark: one task, all tasks, a crowd of texts, and what the answers are."""

    def __init__(self, kind: str, precision: str) -> None:
        self._kind, self._precision = kind, precision
        self._serving: Serving | None = None
        self._texts: list[str] = []

    def answer(self, ask: Ask) -> Reply:
        """The answer to one command."""
        match ask.command:
            case "load":
                return self._load(Path(ask.path or ""))
            case "prepare":
                return self._prepare()
            case "single":
                return SingleTimes(seconds=self._timed(self._loaded.one, ask.count or 1))
            case "forward":
                watch = Stopwatch()
                times = self._timed(self._loaded.all, ask.count or 1)
                return ForwardTimes(seconds=times, others=watch.read()[1])
            case "run":
                return self._run()
            case "save":
                return self._save(Path(ask.path or ""))
            case "close":
                return Done()
            case "memory" | "cycle" | "idle":
                raise ValueError(f"a worker that serves tasks has no answer to {ask.command!r}")

    @property
    def _loaded(self) -> Serving:
        if self._serving is None:
            raise RuntimeError("nothing is loaded yet")
        return self._serving

    def _load(self, file: Path) -> Loaded:
        """Load, and answer all tasks for the first text: from then on it serves."""
        start = time.perf_counter()
        materials = read_materials(file)
        self._texts = materials.texts
        self._serving = _make(self._kind, materials, self._precision)
        self._serving.all(self._texts[0])
        return Loaded(seconds=time.perf_counter() - start, resident_bytes=resident_bytes())

    def _prepare(self) -> Prepared:
        start = time.perf_counter()
        for text in self._texts[:_WARM]:
            self._loaded.one(text)
            self._loaded.all(text)
        self._loaded.crowd(self._texts[:CROWD])
        return Prepared(seconds=time.perf_counter() - start, tokens=0, facts=self._loaded.facts())

    def _timed(self, call: Any, count: int) -> tuple[float, ...]:
        times = []
        for number in range(count):
            start = time.perf_counter()
            call(self._texts[number % len(self._texts)])
            times.append(time.perf_counter() - start)
        return tuple(times)

    def _run(self) -> RunTime:
        reset_peak()
        watch = Stopwatch()
        self._loaded.crowd(self._texts[:CROWD])
        seconds, others = watch.read()
        return RunTime(seconds=seconds, texts=CROWD, peak_bytes=peak_bytes(), others=others)

    def _save(self, path: Path) -> Done:
        import numpy as np

        np.savez(path, **self._loaded.logits(self._texts[0]))  # type: ignore[arg-type]
        return Done(path=str(path))


def _make(kind: str, materials: Materials, precision: str) -> Serving:
    if kind == "transformers":
        return TransformersServing(materials, precision)
    if kind in ("peft", "peft-mixed"):
        return PeftServing(materials, precision, mixed=kind == "peft-mixed")
    return VsrServing(materials, precision, layers=None if kind == "merged" else kind)


def main() -> None:
    """Serve six tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--precision", choices=["fp32", "bf16"], required=True)
    arguments = parser.parse_args()
    serve_session(Session(arguments.kind, arguments.precision).answer)


if __name__ == "__main__":
    main()
