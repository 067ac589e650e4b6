"""What the upstream says of its models: their chat templates and windows, asked of real servers of every shape."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import template_server as shapes
from template_server import TemplateServer, models_body, running_template_server

from memory.adapters.models import upstream_models
from memory.adapters.models.upstream_models import MODELS_NAMED_MAX, UpstreamModels
from memory.chat.token_estimate import estimated_tokens
from memory.model import Placement

MODELS = {"free": shapes.ANYWHERE, "strict": shapes.FIRST, "none": shapes.NOWHERE, "pairs": shapes.NO_TWINS}
WINDOWS = {"small": 4096, "large": 131072, "negative": -1}
LISTING = {"data": [{"id": "mute"}, *({"id": model, "max_model_len": size} for model, size in WINDOWS.items())]}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is not speed."""
    monkeypatch.setattr(upstream_models, "SECONDS_MAX", 60.0)


async def test_a_server_that_is_silent_or_not_there_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with running_template_server(MODELS) as server:
        there = server.url
    for nowhere in (there, ""):
        async with UpstreamModels(nowhere) as probe:
            assert await probe.placement("strict") is await probe.window("small") is None
            assert list(await probe.models()) == []
    monkeypatch.setattr(upstream_models, "SECONDS_MAX", 0.1)
    with running_template_server(MODELS, shapes.SILENT) as server:
        server.models = answered(LISTING)
        async with UpstreamModels(server.url) as probe:
            asked = probe.placement("strict"), probe.placement("free"), probe.window("small")
            assert await asyncio.gather(*asked) == [None, None, None]


@pytest.mark.parametrize("shape", [shapes.VLLM, shapes.RENDERS])
@pytest.mark.parametrize(
    ("model", "placement"),
    [
        ("free", Placement.BEFORE_LAST_USER),
        ("strict", Placement.SYSTEM),
        ("pairs", Placement.SYSTEM),
        ("none", Placement.OFF),
        ("unheard of", None),
        ("", None),
        ("\ud800", None),
        ("x" * 10_000, None),
    ],
)
async def test_a_server_that_renders_tells_where_notes_go(model: str, placement: Placement | None, shape: str) -> None:
    with running_template_server(MODELS, shape) as server:
        for base in (server.url, f"{server.url}/v1/", f"{server.url}/below/v1"):
            async with UpstreamModels(base) as probe:
                assert await probe.placement(model) is placement


@pytest.mark.parametrize(
    "shape", [shapes.LLAMA_CPP, shapes.MISSING, shapes.PROMPT_ONLY, shapes.NONSENSE, shapes.GUARDED, shapes.REDIRECT]
)
async def test_a_server_of_another_shape_tells_nothing(shape: str) -> None:
    with running_template_server(MODELS, shape) as server:
        async with UpstreamModels(server.url) as probe:
            assert [await probe.placement(model) for model in MODELS] == [None] * len(MODELS)


async def test_a_server_names_its_models() -> None:
    with running_template_server(MODELS) as server:
        server.models = models_body("one", "two", *(f"more-{number}" for number in range(100)))
        for base in (server.url, f"{server.url}/v1/"):
            async with UpstreamModels(base) as probe:
                named = await probe.models()
                assert named[:2] == ["one", "two"]
                assert len(named) == MODELS_NAMED_MAX


async def test_many_who_ask_at_once_and_again_cost_one_question() -> None:
    with running_template_server(MODELS) as server:
        async with UpstreamModels(server.url) as probe:
            told = await asyncio.gather(*(probe.placement("free") for _ in range(50)))
            assert {*told, await probe.placement("free")} == {Placement.BEFORE_LAST_USER}
            assert len(server.questions) == 1


@contextmanager
def running_model_server(tokenized: object = None, listed: object = None) -> Iterator[TemplateServer]:
    """With these answers to `/tokenize` and `/v1/models`; None: there is no such path."""
    with running_template_server({}, shapes.MISSING) as server:
        server.tokenized, server.models = answered(tokenized), answered(listed)
        yield server


def answered(answer: object) -> bytes | None:
    return answer if answer is None or isinstance(answer, bytes) else json.dumps(answer).encode()


async def test_a_server_that_lists_windows_tells_them() -> None:
    with running_model_server(listed=LISTING) as server:
        for base in (server.url, f"{server.url}/v1", f"{server.url}/v1/"):
            async with UpstreamModels(base) as probe:
                found = [await probe.window(model) for model in (*WINDOWS, "mute", "other", "", "x" * 999)]
                assert [one.tokens if one else None for one in found] == [4096, 131072, *[None] * 5]


async def test_a_server_that_counts_tokens_corrects_our_estimate() -> None:
    with running_model_server({"count": 1, "max_model_len": 8192}, LISTING) as server:
        async with UpstreamModels(server.url) as probe:
            await probe.window("m")
            (asked,) = server.questions
            assert asked["model"] == "m"
            sample = estimated_tokens(asked["prompt"])
            server.tokenized = answered({"count": round(sample * 1.3), "max_model_len": 8192})
            window = await probe.window("m")
            assert window is not None
            assert (window.tokens, round(window.per_estimate, 2)) == (8192, 1.3)
            server.tokenized = answered({"count": 10_000_000, "max_model_len": 8192})
            window = await probe.window("m")
            assert window is not None
            assert window.per_estimate < 2, "one strange answer must not leave notes without room"


@pytest.mark.parametrize(
    "answer", [None, b"", b"[" * 100_000, b"3", {"data": 3}, {"data": [{"id": 3}]}, {"data": []}, {"count": 3}]
)
async def test_a_server_of_another_shape_tells_no_window_and_names_no_models(answer: object) -> None:
    with running_model_server(answer, answer) as server:
        async with UpstreamModels(server.url) as probe:
            assert await probe.window("m") is None
            assert list(await probe.models()) == []
