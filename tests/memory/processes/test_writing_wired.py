"""The product's own parts with a chat model that reads: it writes profiles and states, unless that is switched off."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_server import FakeModelServer, running_chat_server
from hashing_embedder import HashingEmbedder
from long_chats import FIRST
from prometheus_client import CollectorRegistry

from memory.adapters.in_memory import InMemoryStore
from memory.evaluation.sandbox import SettableClock
from memory.model import Conversation, Message, Scope
from memory.ports import ResentHistory
from memory.processes.composition import Parts, open_parts_on
from memory.processes.from_settings import vector_origin
from memory.processes.kept_state import Process
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics
from memory.service.prose_writing import SETTLED_SECONDS
from memory.service.requests import NewMemory
from memory.settings.loader import from_process, load

NOW = 1_750_000_000.0
SAID = ("I prefer green tea", "I prefer tabs", "I prefer answers in metric units")
PROSE = "I prefer green tea, tabs and answers in metric units."


def says(body: dict[str, Any]) -> str:
    """A united profile, or the first sentence of a conversation."""
    first, *more = body["messages"][1]["content"].splitlines()
    if "user: " not in first:
        return json.dumps({"sentences": [{"text": PROSE, "lines": list(range(1, len(more) + 2))}]})
    text = first.partition(": ")[2]
    return json.dumps({"sentences": [{"kind": "decision", "text": text, "lines": [1]}]})


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with running_chat_server() as running:
        running.says = says
        yield running


@asynccontextmanager
async def opened(folder: Path, server: FakeModelServer, **memory: Any) -> AsyncIterator[tuple[Parts, SettableClock]]:
    address, _, port = server.url.rpartition(":")
    endpoint = {"address": address, "port": int(port)}
    written = {
        "memory": {"learn": {"reader": "model"}, **memory},
        "models_dir": from_process(None, {}).models_dir,
        "data_dir": str(folder / "data"),
        "external_models": [{"model_role": "memory_extraction", "llm_model_name": "m", "llm_endpoint": endpoint}],
    }
    (folder / "data").mkdir()
    (folder / "settings.yaml").write_text(json.dumps(written))
    settings, clock = load(folder / "settings.yaml", {}, {}), SettableClock(NOW)
    async with AsyncExitStack() as stack:
        process = Process(settings, Instruments(clock, Metrics(CollectorRegistry())))
        embedder = HashingEmbedder()
        store = InMemoryStore(dimension=embedder.dimension)
        parts = await open_parts_on(process, stack, store=store, embedder=embedder, origin=vector_origin(settings))
        yield parts, clock


def history() -> ResentHistory:
    messages = FIRST.messages()[:102]
    talk = Conversation(tuple(Message(one["role"], one["content"]) for one in messages))
    keys = {index: f"k{index}" for index, one in enumerate(messages) if one["role"] == "user"}
    return ResentHistory(Scope("ann"), talk, keys, lambda: range(len(messages)), NOW)


async def test_the_worker_s_profiles_and_the_filter_s_states_are_written(
    tmp_path: Path, server: FakeModelServer
) -> None:
    async with opened(tmp_path, server) as (parts, clock):
        library = parts.library()
        await library.add(Scope("ann"), [NewMemory(one, category="preference") for one in SAID])
        assert await parts.profile_refresher().refresh() == 1
        clock.now += SETTLED_SECONDS
        writing = parts.profile_prose()
        assert writing is not None
        assert await writing.write_next()
        assert PROSE in (await library.profiles.show("ann")).text
        await parts.compactor().compact(history())
        assert parts.metrics.compaction_writings.labels("written")._value.get() == 1


async def test_each_can_be_switched_off(tmp_path: Path, server: FakeModelServer) -> None:
    memory = {"profile": {"prose": "off"}, "compaction": {"writer": "off"}}
    async with opened(tmp_path, server, **memory) as (parts, _):
        assert parts.profile_prose() is None
        await parts.compactor().compact(history())
        assert parts.metrics.compactions.labels("made")._value.get() == 1
        assert server.asked == []
