"""The synchronous facade."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self, TypeVar

from ..catalog import Progress
from ..contract import (
    Aggregation,
    BlockingModelHandle,
    CallContext,
    ClassificationResponse,
    EmbeddingResponse,
    InferenceRequest,
    ModelHandle,
    ModelInfo,
    MultiTaskResponse,
    RerankingResponse,
    Response,
    SimilarityResponse,
    TaggingResponse,
    Truncation,
)
from ..errors import VsrError
from ..plugins import PluginHost
from .answers import foreign_failure
from .arguments import Hints, check_timeout
from .core import ConfigSource, RuntimeCore
from .loop import LoopThread
from .plain import PlainFacade
from .planned import Ask
from .together import AskAll, answer_blocking, answer_groups, groups_of, join_outcomes, members_of, wanted

__all__ = ["Runtime"]

R = TypeVar("R", bound=Response)


class Runtime(PlainFacade):
    """A runtime for code that blocks. Safe to use from any number of threads; does not survive a fork.

    ``model`` is a role, a catalog entry or a backend id. ``timeout`` is in seconds and covers loading too. ``hints``
    is what routing may go by: tenant, app, anything. ``requires`` names features a candidate must have. ``truncate``
    says what becomes of an input over the model's limit: ``error`` refuses it, ``end`` and ``start`` cut it there,
    ``window`` reads it in overlapping windows, which embedding cannot.

    Every call raises :class:`~vsr_core.errors.InvalidInputError` for a wrong argument,
    :class:`~vsr_core.errors.ModelNotFoundError` and :class:`~vsr_core.errors.CapabilityUnmetError` before anything is
    loaded, and :class:`~vsr_core.errors.BackendError` where a backend failed.
    """

    def __init__(
        self,
        source: ConfigSource = None,
        *,
        host: PluginHost | None = None,
        environ: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._loop = LoopThread()
        super().__init__(
            RuntimeCore(source, close_handle=self._close_handle, host=host, environ=environ, progress=progress)
        )

    @classmethod
    def from_config(cls, source: ConfigSource = None, *, environ: Mapping[str, str] | None = None) -> Self:
        """A runtime from a YAML or JSON file, a mapping, or (None) from what plugins contribute.

        :raises ConfigError: with every problem of the configuration at once.
        """
        return cls(source, environ=environ)

    def embed(
        self,
        texts: str | Sequence[str],
        *,
        model: str = "default",
        dimensions: int | None = None,
        layer: int | None = None,
        prompt: str | None = None,
        truncate: Truncation = "end",
        timeout: float | None = None,
        hints: Hints | None = None,
        requires: Sequence[str] = (),
    ) -> EmbeddingResponse:
        """Embed texts: ``.vectors`` is float32 ``[n, d]``. A blank text has the vector of its special tokens alone.

        :param dimensions: leading dimensions to keep (Matryoshka), then normalised.
        :param layer: exit after this many layers.
        :param prompt: the name of a prompt of the checkpoint to put before each text.
        """
        self._core.guard()
        return self._run(
            self._core.asking.embed(
                texts,
                model=model,
                dimensions=dimensions,
                layer=layer,
                prompt=prompt,
                truncate=truncate,
                timeout=timeout,
                hints=hints,
                requires=requires,
            )
        )

    def similarity(
        self,
        text: str,
        candidates: str | Sequence[str],
        *,
        model: str = "default",
        timeout: float | None = None,
        hints: Hints | None = None,
        requires: Sequence[str] = (),
    ) -> SimilarityResponse:
        """Compare a text with others: ``.scores`` is float32 ``[n]``, higher is closer."""
        self._core.guard()
        return self._run(
            self._core.asking.similarity(text, candidates, model=model, timeout=timeout, hints=hints, requires=requires)
        )

    def rerank(
        self,
        query: str,
        documents: str | Sequence[str],
        *,
        top_n: int | None = None,
        model: str = "default",
        truncate: Truncation = "end",
        timeout: float | None = None,
        hints: Hints | None = None,
        requires: Sequence[str] = (),
    ) -> RerankingResponse:
        """Order documents by relevance to a query: ``.results[i]`` has ``index`` and ``score``, best first."""
        self._core.guard()
        return self._run(
            self._core.asking.rerank(
                query,
                documents,
                top_n=top_n,
                model=model,
                truncate=truncate,
                timeout=timeout,
                hints=hints,
                requires=requires,
            )
        )

    def classify(
        self,
        texts: str | Sequence[str],
        *,
        model: str = "default",
        layer: int | None = None,
        logits: bool = False,
        truncate: Truncation = "error",
        timeout: float | None = None,
        hints: Hints | None = None,
        requires: Sequence[str] = (),
    ) -> ClassificationResponse:
        """Give each text one of the model's labels: ``.results[i]`` has ``label``, ``score`` and ``distribution``.

        :param layer: exit after this many layers.
        :param logits: give the head's raw numbers too.
        """
        self._core.guard()
        return self._run(
            self._core.asking.classify(
                texts,
                model=model,
                layer=layer,
                logits=logits,
                truncate=truncate,
                timeout=timeout,
                hints=hints,
                requires=requires,
            )
        )

    def nli(
        self,
        pairs: tuple[str, str] | Sequence[tuple[str, str]],
        *,
        model: str = "default",
        layer: int | None = None,
        logits: bool = False,
        truncate: Truncation = "error",
        timeout: float | None = None,
        hints: Hints | None = None,
        requires: Sequence[str] = (),
    ) -> ClassificationResponse:
        """Classify pairs, such as (premise, hypothesis); one pair may be given alone. Answered as by ``classify``."""
        self._core.guard()
        return self._run(
            self._core.asking.nli(
                pairs,
                model=model,
                layer=layer,
                logits=logits,
                truncate=truncate,
                timeout=timeout,
                hints=hints,
                requires=requires,
            )
        )

    def tag(
        self,
        texts: str | Sequence[str],
        *,
        model: str = "default",
        aggregation: Aggregation = "simple",
        layer: int | None = None,
        truncate: Truncation = "error",
        timeout: float | None = None,
        hints: Hints | None = None,
        requires: Sequence[str] = (),
    ) -> TaggingResponse:
        """Find labelled spans: ``.results[i].spans`` have ``start`` and ``end`` (in code points), ``label`` and ``score``.

        :param aggregation: how token labels become spans: ``none``, ``simple``, ``first``, ``average`` or ``max``.
        """
        self._core.guard()
        return self._run(
            self._core.asking.tag(
                texts,
                model=model,
                aggregation=aggregation,
                layer=layer,
                truncate=truncate,
                timeout=timeout,
                hints=hints,
                requires=requires,
            )
        )

    def classify_all(
        self,
        texts: str | Sequence[str],
        *,
        tasks: Sequence[str],
        aggregation: Aggregation = "simple",
        truncate: Truncation = "error",
        timeout: float | None = None,
        hints: Hints | None = None,
        requires: Sequence[str] = (),
    ) -> MultiTaskResponse:
        """Ask several classifiers and taggers about the same texts: ``.outcomes[i]`` has the response of a task, or the
        error it alone failed with.

        Adapters of one base are answered together: one tokenisation, one batch, and the layers below the first one that
        any of them changes run once. Each outcome's response has the record of its own model.

        :param tasks: roles, models or backend ids; each is looked up among classifiers and taggers.
        :param aggregation: how taggers' token labels become spans.
        :raises VsrError: every task failed; it is the first one's error.
        """
        self._core.guard()
        return self._run_all(
            self._core.asking.classify_all(
                texts,
                tasks=tasks,
                aggregation=aggregation,
                truncate=truncate,
                timeout=timeout,
                hints=hints,
                requires=requires,
            )
        )

    def load(self, model: str = "default", *, timeout: float | None = None) -> ModelInfo:
        """Load a model before the first request needs it, and say what was loaded."""
        self._core.guard()
        return self._core.pool.load(self._core.target(model), timeout=check_timeout(timeout))

    def swap(self, model: str = "default", *, timeout: float | None = None) -> ModelInfo:
        """Load a model's files anew beside what is loaded, and put the new generation in its place."""
        self._core.guard()
        return self._core.pool.swap(self._core.target(model), timeout=check_timeout(timeout))

    def unload(self, model: str = "default", *, timeout: float | None = None) -> bool:
        """Unload a model once its last request is answered; false where it was not loaded."""
        self._core.guard()
        return self._core.pool.unload(self._core.target(model), timeout=check_timeout(timeout))

    def close(self, *, timeout: float | None = 30.0) -> None:
        """Drain and close everything; what is not done within ``timeout`` seconds is left behind.

        Calling it again finishes what an interrupted call began, and otherwise does nothing.
        """
        seconds = check_timeout(timeout)
        if self._core.finished:
            return
        self._core.closed = True
        if self._core.forked:  # what there is to close is the parent's
            return
        self._core.pool.close(seconds)
        self._loop.run(self._core.aclose())
        self._loop.stop()
        self._core.finished = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, ask: Ask[R]) -> R:
        candidate, call = ask.plan.first, ask.call
        with self._core.pool.lease(candidate.backend_id, call) as lease:
            spec = self._core.sources.spec(candidate.backend_id)
            requests, responses = ask.operation.requests(candidate, spec), list[Response]()
            try:
                for request in requests:
                    responses.append(self._infer(lease.handle, request, call))
            except VsrError as error:
                raise ask.operation.blame(error, asked=len(responses), of=len(requests)) from error.__cause__
            except (Exception, SystemExit) as error:
                raise foreign_failure(candidate.backend_id, error) from error
        return ask.operation.result(candidate, spec, responses)

    def _run_all(self, ask: AskAll) -> MultiTaskResponse:
        members = members_of(ask)
        with ExitStack() as leases:
            for member, backend_id in wanted(members):
                try:
                    member.lease = leases.enter_context(self._core.pool.lease(backend_id, ask.call))
                except VsrError as error:
                    member.answer = error
                else:
                    member.spec = self._core.sources.spec(backend_id)
            groups = groups_of(members)
            if not (len(groups) == 1 and answer_blocking(groups[0])):
                self._loop.run(answer_groups(groups, ask.call))
            return join_outcomes(members, groups)

    def _infer(self, handle: ModelHandle, request: InferenceRequest[Response], call: CallContext) -> Response:
        if isinstance(handle, BlockingModelHandle):
            return handle.infer_blocking(request, call)
        return self._loop.run(handle.infer(request, call), call)

    def _close_handle(self, handle: ModelHandle) -> None:
        if isinstance(handle, BlockingModelHandle):
            asyncio.run(handle.close())
        else:
            self._loop.run(handle.close())
