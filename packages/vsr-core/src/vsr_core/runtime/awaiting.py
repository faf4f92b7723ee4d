"""The asynchronous facade."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self, TypeVar

from ..catalog import Progress
from ..contract import (
    Aggregation,
    BlockingModelHandle,
    ClassificationResponse,
    EmbeddingResponse,
    ModelHandle,
    ModelInfo,
    MultiTaskResponse,
    RerankingResponse,
    Response,
    SimilarityResponse,
    TaggingResponse,
    Truncation,
)
from ..errors import DeadlineExceededError, RuntimeClosedError, VsrError
from ..plugins import PluginHost
from .answers import foreign_failure
from .arguments import Hints, check_timeout
from .core import ConfigSource, RuntimeCore
from .plain import PlainFacade
from .planned import Ask
from .together import AskAll, answer_groups, groups_of, join_outcomes, members_of, wanted

__all__ = ["AsyncRuntime"]

R = TypeVar("R", bound=Response)


class AsyncRuntime(PlainFacade):
    """A runtime for asyncio, bound to the loop it is first awaited on; does not survive a fork.

    The calls are those of :class:`~vsr_core.runtime.Runtime`, each a plain function that returns an awaitable: a wrong
    argument, an unknown name and a capability nobody has raise from the call itself, before there is anything to await.
    """

    def __init__(
        self,
        source: ConfigSource = None,
        *,
        host: PluginHost | None = None,
        environ: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._bound: asyncio.AbstractEventLoop | None = None
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
    ) -> Awaitable[EmbeddingResponse]:
        """Embed texts: ``.vectors`` is float32 ``[n, d]``."""
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
    ) -> Awaitable[SimilarityResponse]:
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
    ) -> Awaitable[RerankingResponse]:
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
    ) -> Awaitable[ClassificationResponse]:
        """Give each text one of the model's labels: ``.results[i]`` has ``label``, ``score`` and ``distribution``."""
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
    ) -> Awaitable[ClassificationResponse]:
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
    ) -> Awaitable[TaggingResponse]:
        """Find labelled spans: ``.results[i].spans`` have ``start``, ``end``, ``label``, ``score`` and ``text``."""
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
    ) -> Awaitable[MultiTaskResponse]:
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

    async def load(self, model: str = "default", *, timeout: float | None = None) -> ModelInfo:
        """Load a model before the first request needs it, and say what was loaded."""
        self._enter()
        return await asyncio.to_thread(self._core.pool.load, self._core.target(model), timeout=check_timeout(timeout))

    async def swap(self, model: str = "default", *, timeout: float | None = None) -> ModelInfo:
        """Load a model's files anew beside what is loaded, and put the new generation in its place."""
        self._enter()
        return await asyncio.to_thread(self._core.pool.swap, self._core.target(model), timeout=check_timeout(timeout))

    async def unload(self, model: str = "default", *, timeout: float | None = None) -> bool:
        """Unload a model once its last request is answered; false where it was not loaded."""
        self._enter()
        return await asyncio.to_thread(self._core.pool.unload, self._core.target(model), timeout=check_timeout(timeout))

    async def aclose(self, *, timeout: float | None = 30.0) -> None:
        """Drain and close everything; what is not done within ``timeout`` seconds is left behind.

        Calling it again finishes what an interrupted call began, and otherwise does nothing.
        """
        seconds = check_timeout(timeout)
        if self._core.finished:
            return
        if self._core.forked:  # what there is to close is the parent's
            self._core.closed = True
            return
        if not self._core.closed:
            self._enter()
        self._core.closed = True
        await asyncio.to_thread(self._core.pool.close, seconds)
        await self._core.aclose()
        self._core.finished = True

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _run(self, ask: Ask[R]) -> R:
        self._enter()
        candidate, call = ask.plan.first, ask.call
        lease = await self._core.pool.lease_async(candidate.backend_id, call)
        with lease:
            spec = self._core.sources.spec(candidate.backend_id)
            requests, responses = ask.operation.requests(candidate, spec), list[Response]()
            try:
                async with asyncio.timeout(call.remaining()) as patience:
                    for request in requests:
                        responses.append(await lease.handle.infer(request, call))
            except VsrError as error:
                raise ask.operation.blame(error, asked=len(responses), of=len(requests)) from error.__cause__
            except (Exception, SystemExit) as error:
                if not (isinstance(error, TimeoutError) and patience.expired()):
                    raise foreign_failure(candidate.backend_id, error) from error
                raise DeadlineExceededError(f"no answer within {call.timeout:g} s", timeout=call.timeout) from None
        return ask.operation.result(candidate, spec, responses)

    async def _run_all(self, ask: AskAll) -> MultiTaskResponse:
        self._enter()
        members = members_of(ask)
        with ExitStack() as leases:
            for member, backend_id in wanted(members):
                try:
                    member.lease = leases.enter_context(await self._core.pool.lease_async(backend_id, ask.call))
                except VsrError as error:
                    member.answer = error
                else:
                    member.spec = self._core.sources.spec(backend_id)
            groups = groups_of(members)
            await answer_groups(groups, ask.call)
            return join_outcomes(members, groups)

    def _enter(self) -> None:
        """Bind to the running loop, or refuse another.

        :raises RuntimeClosedError: the runtime is closed, forked, or belongs to another loop.
        """
        self._core.guard()
        loop = asyncio.get_running_loop()
        if self._bound is None:
            self._bound = loop
        elif self._bound is not loop:
            raise RuntimeClosedError("this runtime belongs to another event loop; make one for each loop")

    def _close_handle(self, handle: ModelHandle) -> None:
        """Called on the load thread, while the loop the handle lived on runs."""
        if isinstance(handle, BlockingModelHandle) or self._bound is None:
            asyncio.run(handle.close())
        else:
            asyncio.run_coroutine_threadsafe(handle.close(), self._bound).result()
