"""Chat templates: what the upstream says of them, asked of real servers of every shape. On every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from template_server import (
    ANYWHERE,
    FIRST,
    GUARDED,
    LLAMA_CPP,
    MISSING,
    NO_TWINS,
    NONSENSE,
    NOWHERE,
    PROMPT_ONLY,
    REDIRECT,
    RENDERS,
    SILENT,
    VLLM,
    models_body,
    running_template_server,
)

from memory.adapters.models.template_probe import MODELS_NAMED_MAX, TemplateProbe
from memory.model import Placement

PROBES: dict[str, Callable[[str], TemplateProbe]] = {"tokenize": TemplateProbe}  # one line per adapter
MODELS = {"free": ANYWHERE, "strict": FIRST, "none": NOWHERE, "pairs": NO_TWINS}


@pytest.fixture(params=sorted(PROBES))
def probe_of(request: pytest.FixtureRequest) -> Callable[[str], TemplateProbe]:
    return PROBES[request.param]


@pytest.mark.parametrize("shape", [VLLM, RENDERS])
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
async def test_a_server_that_renders_templates_tells_where_notes_may_stand(
    probe_of: Callable[[str], TemplateProbe], model: str, placement: Placement | None, shape: str
) -> None:
    with running_template_server(MODELS, shape) as server:
        for base in (server.url, f"{server.url}/v1/", f"{server.url}/below/v1"):
            async with probe_of(base) as probe:
                assert await probe.placement(model) is placement


@pytest.mark.parametrize("shape", [LLAMA_CPP, MISSING, PROMPT_ONLY, NONSENSE, GUARDED, REDIRECT])
async def test_a_server_of_another_shape_tells_nothing(probe_of: Callable[[str], TemplateProbe], shape: str) -> None:
    with running_template_server(MODELS, shape) as server:
        async with probe_of(server.url) as probe:
            assert [await probe.placement(model) for model in MODELS] == [None] * len(MODELS)


async def test_a_silent_server_tells_nothing_in_time(probe_of: Callable[[str], TemplateProbe]) -> None:
    with running_template_server(MODELS, SILENT) as server:
        async with probe_of(server.url) as probe:
            assert await asyncio.gather(probe.placement("strict"), probe.placement("free")) == [None, None]


async def test_a_server_that_is_not_there_tells_nothing(probe_of: Callable[[str], TemplateProbe]) -> None:
    with running_template_server(MODELS) as server:
        url = server.url
    for nowhere in (url, ""):
        async with probe_of(nowhere) as probe:
            assert await probe.placement("strict") is None


async def test_a_server_names_its_models(probe_of: Callable[[str], TemplateProbe]) -> None:
    with running_template_server(MODELS) as server:
        server.models = models_body("one", "two", *(f"more-{number}" for number in range(100)))
        for base in (server.url, f"{server.url}/v1/"):
            async with probe_of(base) as probe:
                named = await probe.models()
                assert named[:2] == ["one", "two"]
                assert len(named) == MODELS_NAMED_MAX


@pytest.mark.parametrize(
    "answer", [None, b"", b"[" * 100_000, b'{"data": 3}', b'{"data": [{"id": 3}]}', b'{"data":[]}']
)
async def test_a_server_that_names_no_models_costs_nothing(
    probe_of: Callable[[str], TemplateProbe], answer: bytes | None
) -> None:
    with running_template_server(MODELS) as server:
        server.models, url = answer, server.url
        async with probe_of(url) as probe:
            assert list(await probe.models()) == []
    for nowhere in (url, ""):
        async with probe_of(nowhere) as probe:
            assert list(await probe.models()) == []


async def test_many_who_ask_at_once_and_again_cost_one_question(probe_of: Callable[[str], TemplateProbe]) -> None:
    with running_template_server(MODELS) as server:
        async with probe_of(server.url) as probe:
            told = await asyncio.gather(*(probe.placement("free") for _ in range(50)))
            assert {*told, await probe.placement("free")} == {Placement.BEFORE_LAST_USER}
            assert len(server.questions) == 1
