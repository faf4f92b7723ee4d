"""Both facades answer alike; what is wrong with a call is raised by the call itself."""

import asyncio
import os
import re
import threading
import time

import numpy as np
import pytest
from vsr_core import AsyncRuntime, Runtime
from vsr_core.contract import BackendId
from vsr_core.errors import (
    CapabilityUnmetError,
    CheckpointError,
    ConfigError,
    DeadlineExceededError,
    InferenceError,
    InvalidInputError,
    LoadError,
    ModelNotFoundError,
    RuntimeClosedError,
)
from vsr_core.testing import ToyHandle

toy_embed = ToyHandle._embed


@pytest.fixture
def config(checkpoint):
    return {
        "catalog": {"mini": {"source": str(checkpoint)}, "gone": {"source": "/nowhere/at/all"}},
        "roles": {"embedding": {"default": ["toy:mini"], "lost": ["toy:gone"]}},
    }


@pytest.fixture
def vsr(config, host):
    with Runtime(config, host=host) as runtime:
        yield runtime


def toy(runtime):
    return runtime._core.instances.adapter("toy")


def test_texts_become_vectors_in_order(vsr):
    together = vsr.embed(["a", "b", "a"])
    assert together.vectors.shape == (3, 8)
    assert together.vectors.dtype == np.float32
    np.testing.assert_array_equal(together.vectors[0], together.vectors[2])
    np.testing.assert_array_equal(vsr.embed("b").vectors[0], together.vectors[1])


def test_the_envelope_names_who_answered(vsr):
    envelope = vsr.embed("a").envelope
    assert (str(envelope.backend_id), envelope.revision, envelope.dtype) == ("toy:mini", "1", "float32")
    assert envelope.request_id
    assert envelope.request_id != vsr.embed("a").envelope.request_id


def test_similarity_is_the_cosine_to_each_candidate(vsr):
    vectors = vsr.embed(["q", "x", "y"]).vectors.astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    response = vsr.similarity("q", ["x", "y", "q"])
    np.testing.assert_allclose(response.scores, [*(unit[1:] @ unit[0]), 1.0], atol=1e-6)
    assert response.function == "cosine"


def test_reranking_is_derived_from_embedding_and_keeps_the_index(vsr):
    documents = ["x", "q", "y", "q"]
    scores = vsr.similarity("q", documents).scores
    response = vsr.rerank("q", documents)
    assert [result.index for result in response.results[:2]] == [1, 3]
    assert sorted(result.index for result in response.results) == [0, 1, 2, 3]
    for result in response.results:
        assert result.score == pytest.approx(scores[result.index], abs=1e-6)
    assert vsr.rerank("q", documents, top_n=2).results == response.results[:2]
    assert vsr.rerank("q", documents, top_n=99).results == response.results
    assert response.score_kind == "cosine"


@pytest.mark.parametrize("model", ["default", "mini", "toy:mini"])
def test_a_role_a_catalog_name_and_an_id_lead_to_the_same_model(vsr, model):
    assert vsr.embed("a", model=model).envelope.backend_id == BackendId("toy", "mini")


CALLS = {
    "unknown model": (lambda r: r.embed("a", model="nobody"), ModelNotFoundError),
    "unknown model on a backend": (lambda r: r.embed("a", model="toy:nobody"), ModelNotFoundError),
    "unknown backend": (lambda r: r.embed("a", model="nowhere:mini"), ModelNotFoundError),
    "no name": (lambda r: r.embed("a", model=None), InvalidInputError),
    "malformed id": (lambda r: r.embed("a", model=":mini"), InvalidInputError),
    "missing files": (lambda r: r.embed("a", model="lost"), CheckpointError),
    "empty list": (lambda r: r.embed([]), InvalidInputError),
    "not text": (lambda r: r.embed([1]), InvalidInputError),
    "lone surrogate": (lambda r: r.embed("\ud800"), InvalidInputError),
    "lone surrogate in a query": (lambda r: r.rerank("\ud800", ["a"]), InvalidInputError),
    "no query": (lambda r: r.similarity(None, ["a"]), InvalidInputError),
    "no documents": (lambda r: r.rerank("a", []), InvalidInputError),
    "zero results": (lambda r: r.rerank("a", ["b"], top_n=0), InvalidInputError),
    "boolean width": (lambda r: r.embed("a", dimensions=True), InvalidInputError),
    "negative layer": (lambda r: r.embed("a", layer=-1), InvalidInputError),
    "no time": (lambda r: r.embed("a", timeout=0), InvalidInputError),
    "not a time": (lambda r: r.embed("a", timeout="1"), InvalidInputError),
    "more time than there is": (lambda r: r.embed("a", timeout=1e300), InvalidInputError),
    "time without end": (lambda r: r.embed("a", timeout=float("inf")), InvalidInputError),
    "an absurd number": (lambda r: r.embed("a", timeout=10**400), InvalidInputError),
    "features that are no list": (lambda r: r.embed("a", requires=5), InvalidInputError),
    "nan of time": (lambda r: r.embed("a", timeout=float("nan")), InvalidInputError),
    "hints that are no mapping": (lambda r: r.embed("a", hints=["x"]), InvalidInputError),
    "a hint that is no plain value": (lambda r: r.embed("a", hints={"x": []}), InvalidInputError),
    "a truncation nobody knows": (lambda r: r.embed("a", truncate="middle"), InvalidInputError),
    "a truncation nobody knows in a ranking": (lambda r: r.rerank("a", ["b"], truncate=None), InvalidInputError),
    "unknown feature": (lambda r: r.embed("a", requires=["telepathy"]), InvalidInputError),
    "feature the backend lacks": (lambda r: r.embed("a", requires=["layer_exit"]), CapabilityUnmetError),
    "width the backend cannot cut": (lambda r: r.embed("a", dimensions=4), CapabilityUnmetError),
}


@pytest.mark.parametrize(("ask", "error"), CALLS.values(), ids=CALLS)
def test_what_is_wrong_is_raised_by_the_plain_call_and_the_next_one_works(config, host, ask, error):
    with Runtime(config, host=host) as blocking:
        with pytest.raises(error):
            ask(blocking)
        assert blocking.embed("a").vectors.shape == (1, 8)

    async def main():
        async with AsyncRuntime(config, host=host) as awaiting:
            with pytest.raises(error):
                ask(awaiting)  # never awaited: there is nothing to await
            return (await awaiting.embed("a")).vectors.shape

    assert asyncio.run(main()) == (1, 8)


def test_the_asynchronous_facade_gives_what_the_other_gives(config, host):
    async def main():
        async with AsyncRuntime(config, host=host) as vsr:
            embedded, similar, ranked = await asyncio.gather(
                vsr.embed(["a", "b"]), vsr.similarity("a", ["b", "c"]), vsr.rerank("a", ["b", "a"])
            )
            return embedded.vectors, similar.scores, [result.index for result in ranked.results]

    vectors, scores, order = asyncio.run(main())
    with Runtime(config, host=host) as blocking:
        np.testing.assert_array_equal(vectors, blocking.embed(["a", "b"]).vectors)
        np.testing.assert_array_equal(scores, blocking.similarity("a", ["b", "c"]).scores)
    assert order == [1, 0]


def test_a_deadline_covers_the_load_and_the_request(vsr):
    gate = threading.Event()
    toy(vsr).before_load = gate.wait
    with pytest.raises(DeadlineExceededError):
        vsr.embed("a", timeout=0.05)
    gate.set()
    toy(vsr).before_inference = lambda: time.sleep(0.2)
    assert vsr.embed("a", timeout=5).vectors.shape == (1, 8)


def test_a_backend_that_fails_to_load_is_named_and_another_try_may_work(vsr):
    toy(vsr).before_load = lambda: (_ for _ in ()).throw(RuntimeError("out of luck"))
    with pytest.raises(LoadError, match="toy:mini cannot be loaded: RuntimeError: out of luck"):
        vsr.embed("a")
    assert vsr.models()[1].state == "failed"
    toy(vsr).before_load = None
    vsr.load()
    assert vsr.embed("a").envelope.backend_id == BackendId("toy", "mini")


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("nosuch", r"no role and no model is called 'nosuch'; `vsr models` lists them"),
        ("toy:nosuch", r"toy:nosuch: the catalog has no model called 'nosuch'"),
        ("lost", r".*lost"),
    ],
)
def test_a_name_that_stands_for_nothing_is_told_without_a_kind_nobody_asked_for(config, host, model, told):
    config["roles"]["classification"] = {"lost": ["lost:gone"]}
    config["roles"]["embedding"].pop("lost")
    with Runtime(config, host=host) as vsr:
        for ask in (vsr.load, vsr.swap, vsr.unload):
            with pytest.raises(ModelNotFoundError) as caught:
                ask(model)
            assert "embedding" not in caught.value.message
            assert re.match(told, caught.value.message)


def test_the_default_is_told_without_a_kind_too(host):
    with Runtime(host=host) as vsr, pytest.raises(ModelNotFoundError, match="no role is called 'default', and there"):
        vsr.load()


def test_a_model_that_nobody_serves_is_refused_for_what_it_is_for(host, heads):
    catalog = {"intent": {"source": str(heads / "sequence"), "backends": ["other"]}}
    with Runtime({"catalog": catalog, "backends": {"other": {"adapter": "toy"}}}, host=host) as vsr:
        with pytest.raises(CapabilityUnmetError) as caught:
            vsr.load("toy:intent")
        assert caught.value.unmet == "backend"
        assert vsr.load("intent").backend_id == BackendId("other", "intent")


SPLIT = {"query": "query: ", "passage": "passage: "}


@pytest.mark.parametrize("prompts", [{}, SPLIT], ids=["asked together", "asked apart"])
@pytest.mark.parametrize(
    ("odd", "named"),
    [("q", "query"), ("x", "documents[0]"), ("y", "documents[1]"), ("x y", "documents[0], documents[1]")],
)
def test_a_derived_ranking_names_inputs_as_its_caller_does(config, host, prompts, odd, named):
    config["catalog"]["mini"]["prompts"] = prompts
    with Runtime(config, host=host) as vsr:
        vsr.load()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ToyHandle, "_embed", refuse(odd.split()))
            with pytest.raises(InvalidInputError) as caught:
                vsr.rerank("q", ["x", "y"])
    assert (caught.value.message, caught.value.param) == (f"{named} is odd", named)


def test_a_similarity_names_inputs_as_its_caller_does(config, host, monkeypatch):
    monkeypatch.setattr(ToyHandle, "_embed", refuse(["q", "y"]))

    async def main():
        async with AsyncRuntime(config, host=host) as vsr:
            await vsr.similarity("q", ["x", "y"])

    with pytest.raises(InvalidInputError, match=r"^text, candidates\[1\] is odd$"):
        asyncio.run(main())


def test_an_error_of_a_request_the_caller_made_stays_as_it_is(vsr, monkeypatch):
    monkeypatch.setattr(ToyHandle, "_embed", refuse(["x"]))
    with pytest.raises(InvalidInputError, match=r"^texts\[1\] is odd$") as caught:
        vsr.embed(["q", "x"])
    assert caught.value.param == "texts[1]"
    assert isinstance(caught.value.__cause__, KeyError)


def refuse(odd):
    """A handle's embedding that does not like some texts."""

    def embed(handle, request, call):
        found = [f"texts[{index}]" for index, text in enumerate(request.texts) if text in odd]
        if found:
            raise InvalidInputError(f"{', '.join(found)} is odd", param=", ".join(found)) from KeyError()
        return toy_embed(handle, request, call)

    return embed


def test_models_are_listed_sorted_whether_loaded_or_not(vsr):
    listed = vsr.models()
    assert [str(info.backend_id) for info in listed] == ["toy:gone", "toy:mini"]
    assert listed[0].state_reason
    assert [info.state for info in listed] == ["not_loaded", "not_loaded"]
    vsr.load("mini")
    assert vsr.models()[1].state == "ready"
    assert vsr.unload("mini")
    assert vsr.models()[1].state == "not_loaded"
    assert not vsr.unload("mini")


def test_a_model_no_backend_can_serve_is_listed_with_the_reason(host, checkpoint):
    with Runtime({"catalog": {"mini": {"source": str(checkpoint)}, "odd": {"source": "/nowhere"}}}, host=host) as vsr:
        reasons = {str(info.backend_id): info.state_reason for info in vsr.models()}
    assert reasons["toy:mini"] is None
    assert "/nowhere" in reasons["toy:odd"]


def test_the_name_to_load_leads_where_a_request_would(host, checkpoint):
    config = {
        "catalog": {"mini": {"source": str(checkpoint)}},
        "roles": {"embedding": {"default": ["nowhere:mini", "toy:mini"]}},
    }
    with Runtime(config, host=host) as vsr:
        assert vsr.load("default").backend_id == vsr.embed("a").envelope.backend_id == BackendId("toy", "mini")
    with Runtime({"catalog": config["catalog"]}, host=host) as vsr:
        assert vsr.load().backend_id == BackendId("toy", "mini")


def test_awaiting_a_handle_that_forgets_the_deadline_ends_with_it(config, host, monkeypatch):
    from vsr_core.testing import ToyHandle

    async def forget(self, request, call):
        await asyncio.sleep(30)

    monkeypatch.setattr(ToyHandle, "infer", forget)

    async def main():
        async with AsyncRuntime(config, host=host) as vsr:
            await vsr.load()
            with pytest.raises(DeadlineExceededError):
                await vsr.embed("a", timeout=0.05)

    asyncio.run(main())


def test_swapping_gives_the_next_generation(vsr):
    assert vsr.load().revision == "1"
    assert vsr.swap().revision == "2"
    assert vsr.embed("a").envelope.revision == "2"


def test_status_matrix_plugins_and_check_tell_what_there_is(vsr):
    status = vsr.status()
    assert [backend.name for backend in status.backends] == ["toy"]
    assert [(role.kind, role.name) for role in status.roles] == [("embedding", "default"), ("embedding", "lost")]
    assert {cell.backend for cell in vsr.matrix().cells} == {"toy"}
    assert vsr.plugins().plugins[0].name == "toy"
    assert [problem.where for problem in vsr.check().problems] == ["catalog.gone.source"]


def test_a_closed_runtime_refuses_and_closes_once(config, host):
    runtime = Runtime(config, host=host)
    runtime.load()
    backend = toy(runtime)
    runtime.close()
    runtime.close()
    assert not backend.open_handles
    for ask in (lambda: runtime.embed("a"), lambda: runtime.load(), lambda: runtime.unload()):
        with pytest.raises(RuntimeClosedError, match="closed"):
            ask()


def test_a_runtime_in_a_forked_child_says_so(vsr):
    vsr.load()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            vsr.embed("a")
        except RuntimeClosedError as error:
            os.write(write, error.message.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert "does not survive a fork" in pipe.read()


def test_an_asynchronous_runtime_belongs_to_one_loop(config, host):
    runtime = AsyncRuntime(config, host=host)

    async def use():
        return await runtime.embed("a")

    asyncio.run(use())
    with pytest.raises(RuntimeClosedError, match="another event loop"):
        asyncio.run(use())
    runtime._core.pool.close()


def test_an_answer_of_the_wrong_kind_is_an_error_not_a_result(vsr, monkeypatch):
    from vsr_core.contract import Response
    from vsr_core.testing import ToyHandle

    embed = ToyHandle._embed
    monkeypatch.setattr(ToyHandle, "_embed", lambda *args: Response(envelope=embed(*args).envelope))
    with pytest.raises(InferenceError, match="instead of a EmbeddingResponse"):
        vsr.embed("a")


def test_a_configuration_is_refused_whole(host):
    with pytest.raises(ConfigError) as caught:
        Runtime({"catalog": {"a b": {"source": "x"}}, "rolls": {}}, host=host)
    assert len(caught.value.problems) == 2


def test_without_a_configuration_there_is_what_plugins_contribute(host, checkpoint):
    from vsr_core.contract import CatalogEntry, hookimpl

    class Models:
        @hookimpl
        def vsr_catalog(self):
            return [CatalogEntry(name="brought", source=str(checkpoint))]

    host.register(Models(), name="models")
    with Runtime(host=host) as vsr:
        assert str(vsr.embed("a").envelope.backend_id) == "toy:brought"
        assert vsr.models()[0].contributed_by == "models"


@pytest.mark.parametrize("timeout", ["x", -1, 0, float("nan"), 1e300])
def test_a_timeout_that_is_none_is_refused_before_anything_changes(vsr, timeout):
    vsr.load()
    for ask in (vsr.load, vsr.swap, vsr.unload):
        with pytest.raises(InvalidInputError):
            ask(timeout=timeout)
    with pytest.raises(InvalidInputError):
        vsr.close(timeout=timeout)
    assert vsr.embed("a").envelope.revision == "1"


def test_a_close_that_was_interrupted_is_finished_by_the_next(config, host, monkeypatch):
    runtime = Runtime(config, host=host)
    runtime.load()
    backend = toy(runtime)
    close = runtime._core.pool.close
    monkeypatch.setattr(runtime._core.pool, "close", lambda timeout: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        runtime.close()
    monkeypatch.setattr(runtime._core.pool, "close", close)
    assert backend.open_handles
    runtime.close()
    assert not backend.open_handles
