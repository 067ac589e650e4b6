"""Whatever is sent, the API answers in its own shape and never breaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library_parts import library_parts
from prometheus_client import CollectorRegistry

from memory.api.rest import create_app
from memory.processes.composition import SYSTEM_CLOCK
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics

NAMES = (
    *("content", "memory_type", "category", "project_id", "session_id", "agent_id", "created_at", "importance"),
    *("metadata", "memories", "query", "limit", "token_budget", "memory_types", "history", "as_of", "messages", "at"),
    *("trace_id", "role", "tool_calls", "source", "source_type", "target", "target_type", "visibility", "keep_last"),
)
EDGES = st.sampled_from(
    [
        0,
        -1,
        1,
        2**53,
        2**63,
        2**64,
        10**40,
        1e308,
        -0.0,
        0.5,
        "",
        " ",
        "\x00",
        "\u200b",
        "user",
        "assistant",
        "semantic",
    ]
)
TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)  # lone halves of surrogate pairs included
ANY = st.recursive(
    st.none() | st.booleans() | EDGES | TEXT | st.floats(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | TEXT, below, max_size=4),
    max_leaves=12,
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": ANY}), max_size=3
)
PARTIES = st.sampled_from(["user", "agent", "tool", "knowledge", "model", "robot"])
RECORDED = st.fixed_dictionaries(
    {"source_type": PARTIES, "target_type": PARTIES, "content": TEXT},
    optional={"source": TEXT, "target": TEXT, "at": ANY, "id": TEXT, "type": ANY, "visibility": ANY, "trace_id": TEXT},
)
SEARCH_FIELDS = {name: ANY for name in NAMES if name != "query"} | {"history": MESSAGES}
SHAPED = st.one_of(
    st.fixed_dictionaries(
        {"memories": st.lists(st.fixed_dictionaries({"content": TEXT | ANY, "metadata": ANY}), max_size=3)}
    ),
    st.fixed_dictionaries({"query": TEXT | ANY}, optional=SEARCH_FIELDS),
    st.fixed_dictionaries({"session_id": TEXT, "messages": MESSAGES}, optional={"at": ANY, "trace_id": ANY}),
    st.fixed_dictionaries({"messages": st.lists(RECORDED, max_size=3)}, optional={"project_id": ANY}),
    st.fixed_dictionaries({}, optional={"keep_last": ANY, "characters_max": ANY}),
    st.fixed_dictionaries({}, optional={"content": ANY, "importance": ANY, "metadata": ANY, "category": ANY}),
)
BODIES = st.binary(max_size=40) | (ANY | SHAPED).map(lambda value: json.dumps(value).encode())
ROUTES = st.sampled_from(
    [
        *(("POST", f"/v1/memory{path}") for path in ("", "/search", "/turns", "/flush")),
        *((method, "/v1/memory/id-000000") for method in ("GET", "PATCH", "DELETE")),
        *(("GET", f"/v1/memory{path}") for path in ("", "/stats", "/id-000000/history")),
        ("DELETE", "/v1/memory"),
        *(("GET", f"/v1/memory/{path}") for path in ("sessions", "sessions/s", "messages", "conversations/s/messages")),
        *(("POST", f"/v1/conversations/s/{path}") for path in ("messages", "messages", "trim", "compress")),
        *(("DELETE", f"/v1/memory/{path}") for path in ("sessions/s", "messages/turn:id-000001:0")),
    ]
)
PARAMETERS = st.dictionaries(
    st.sampled_from(
        [
            *("subject", "name", "attribute", "value"),
            *("user_id", "status", "memory_type", "as_of", "limit", "cursor", "project_id"),
            *("agent_id", "view", "trace_id", "query", "conversation_id", "keep_memories"),
        ]
    ),
    st.text(max_size=10) | st.sampled_from(["ann", "all", "WzEsICJ4Il0", "1", "1e400"]),
    max_size=3,
)
CALL = st.tuples(ROUTES, PARAMETERS, BODIES)


async def answers_to(calls: list[tuple[tuple[str, str], dict[str, str], bytes]], folder: Path) -> list[httpx.Response]:
    async with library_parts(folder, flush_longest=0.02) as parts:
        metrics = Metrics(CollectorRegistry())
        app = create_app(
            parts.library, identity_mode="development", edge_secret="", instruments=Instruments(SYSTEM_CLOCK, metrics)
        )
        transport = httpx.ASGITransport(app)  # an exception inside is an exception here
        async with httpx.AsyncClient(
            transport=transport,
            base_url="http://localhost",
            headers={"x-authz-user-id": "ann", "content-type": "application/json"},
        ) as api:
            await api.post("/v1/memory", json={"memories": [{"content": "a first memory"}]})
            return [
                await api.request(method, path, params=parameters, content=body)
                for (method, path), parameters, body in calls
            ]


@pytest.mark.full("some hundred requests to a library on disk")
@settings(max_examples=60, deadline=None)
@given(st.lists(CALL, min_size=8, max_size=16))
def test_no_request_breaks_the_api(calls: list[tuple[tuple[str, str], dict[str, str], bytes]]) -> None:
    with TemporaryDirectory() as folder:
        answers = asyncio.run(answers_to(calls, Path(folder)))
    for answer in answers:
        assert answer.status_code < 500, answer.text
        content: Any = answer.json()
        assert ("error" in content) == (answer.status_code >= 400)
