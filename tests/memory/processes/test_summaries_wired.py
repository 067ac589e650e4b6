"""The product's own parts with summaries switched on, which is the default, and off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry

from memory.adapters.in_memory import InMemoryStore
from memory.chat.completions import read_chat_request
from memory.evaluation.sandbox import SettableClock
from memory.learn.readers import Readers
from memory.model import Message, PastNote, Scope, SessionSummary, Turn, TurnStatus
from memory.ports import LearnDue
from memory.processes import entrypoints
from memory.processes.composition import Parts, open_parts_on
from memory.processes.from_settings import vector_origin
from memory.processes.kept_state import Process
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics
from memory.settings.loader import from_process, load

NOW = 1_750_000_000.0
ASKED = {"messages": [{"role": "user", "content": "What did we talk about last time?"}]}
OFF = [{"summaries": {"enabled": False}}, {"learn": {"reader": "off"}}]


@asynccontextmanager
async def opened(folder: Path, **memory: Any) -> AsyncIterator[Parts]:
    written = {
        "memory": memory,
        "models_dir": from_process(None, {}).models_dir,
        "data_dir": str(folder / "data"),
    }
    (folder / "data").mkdir()
    (folder / "settings.yaml").write_text(json.dumps(written))
    settings, clock = load(folder / "settings.yaml", {}, {}), SettableClock(NOW)
    async with AsyncExitStack() as stack:
        process = Process(settings, Instruments(clock, Metrics(CollectorRegistry())))
        embedder = HashingEmbedder(dimension=384)
        store = InMemoryStore(dimension=embedder.dimension)
        yield await open_parts_on(process, stack, store=store, embedder=embedder, origin=vector_origin(settings))


async def summarised(parts: Parts) -> SessionSummary:
    """A session of an earlier time, from when summaries were on."""
    turn = Turn("t1", Scope("ann", session_id="s1"), NOW, (Message("user", "A boat"),), TurnStatus.CLOSED)
    await parts.state.turn_log.append(turn)
    lease = await parts.state.turn_log.lease(now=NOW + 1, seconds=30, due=LearnDue())
    assert lease is not None
    await parts.state.turn_log.acknowledge(lease)
    (due,) = await parts.state.summaries.due(now=NOW + 1, idle_seconds=0, limit=9)
    made = SessionSummary("ann", "s1", 1, "Sailing", "We sail around Rügen.", NOW, NOW, ("t1",), series=due.series)
    assert await parts.state.summaries.put(due, made, None)
    return made


async def given(parts: Parts) -> str:
    await parts.past_talk.run()
    recall = parts.recall()
    async with asyncio.timeout(30):
        while True:
            outcome = await recall.recall(Scope("ann"), read_chat_request(json.dumps(ASKED).encode()))
            if outcome.status.value in ("used", "empty"):
                return "\n".join(note.text for note in outcome.notes)
            await asyncio.sleep(0.05)


async def test_they_are_on_by_default(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        assert parts.settings.memory.has_summaries
        await summarised(parts)
        assert "Rügen" in await given(parts)


@pytest.mark.parametrize("memory", OFF)
async def test_switched_off_those_that_exist_are_not_recalled(tmp_path: Path, memory: dict[str, Any]) -> None:
    async with opened(tmp_path, **memory) as parts:
        await summarised(parts)
        assert await given(parts) == ""


@pytest.mark.parametrize("memory", OFF)
async def test_switched_off_withdrawn_ones_leave_their_notes_and_none_is_made(
    tmp_path: Path, memory: dict[str, Any]
) -> None:
    async with opened(tmp_path, **memory) as parts:
        made = await summarised(parts)
        await parts.state.notes.keep("ann", "k", PastNote("a note", (made.id,), 3), made_at=NOW - 1)
        await parts.state.turn_log.messages.delete_message("ann", "turn:t1:0")
        until = asyncio.Event()
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for work in entrypoints._derivations(parts, Readers(PlainReader()), until):
                group.create_task(work)
            while await parts.state.notes.find("ann", ["k"]):
                await asyncio.sleep(0.02)
            until.set()
        assert await parts.state.summaries.of_session("ann", "s1") is None
