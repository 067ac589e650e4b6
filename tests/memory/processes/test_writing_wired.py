"""The product's own parts: summaries by default and switched off, and what a chat model that reads writes besides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_server import FakeModelServer, running_chat_server
from hashing_embedder import HashingEmbedder
from long_chats import FIRST
from note_lookup import notes_of
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry
from reading_parts import examined_with
from written_settings import named_model, written_settings

from memory.adapters.in_memory import InMemoryStore
from memory.chat.completions import read_chat_request
from memory.evaluation.sandbox import SettableClock
from memory.learn.readers import Readers
from memory.model import Message, PastNote, Scope, SessionSummary, Turn, TurnStatus
from memory.ports import LearnDue
from memory.processes import entrypoints
from memory.processes.background_parts import compactor_of, open_upkeep, summarizer_of
from memory.processes.composition import Parts, open_parts_on
from memory.processes.erasure_parts import open_file_rewriter
from memory.processes.from_settings import vector_origin
from memory.processes.kept_state import Process
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry

NOW = 1_750_000_000.0
ASKED = {"messages": [{"role": "user", "content": "What did we talk about last time?"}]}
BOAT = ("I want a boat for Nils.", "My budget for it is small.")
WRITTEN = "The user wants a boat for Nils."


async def learnt(parts: Parts, *said: str) -> None:
    """A session of these turns, which have been learnt."""
    log, scope = parts.state.turn_log, Scope("ann", session_id="s1")
    for number, text in enumerate(said, 1):
        await log.append(Turn(f"t{number}", scope, NOW, (Message("user", text),), TurnStatus.CLOSED))
    while lease := await log.lease(now=NOW + 1, seconds=30, due=LearnDue()):
        await log.acknowledge(lease)


@asynccontextmanager
async def opened(folder: Path, server: FakeModelServer | None = None, **memory: Any) -> AsyncIterator[Parts]:
    (folder / "data").mkdir()
    models = [] if server is None else [named_model(server.url)]
    memory = {"embedding": {"model": "hashed-words"}, **memory}  # no classifier is shipped for it
    settings = written_settings(folder, memory=memory, data_dir=str(folder / "data"), external_models=models)
    embedder = HashingEmbedder(dimension=384)
    async with AsyncExitStack() as stack:
        process = Process(settings, Telemetry(SettableClock(NOW), Metrics(CollectorRegistry())))
        store = InMemoryStore(dimension=embedder.dimension)
        yield await open_parts_on(process, stack, store=store, embedder=embedder, origin=vector_origin(settings))


async def summarised(parts: Parts) -> SessionSummary:
    """A session of an earlier time, from when summaries were on."""
    await learnt(parts, "A boat")
    (due,) = await parts.state.summaries.due(now=NOW + 1, idle_seconds=0, limit=9)
    made = SessionSummary("ann", "s1", 1, "Sailing", "We sail around Rügen.", NOW, NOW, ("t1",), series=due.series)
    assert await parts.state.summaries.put(due, made, None)
    return made


async def given(parts: Parts) -> str:
    await parts.questions.run()
    recall = parts.recall()
    async with asyncio.timeout(30):
        while True:
            outcome = await recall.recall(Scope("ann"), read_chat_request(json.dumps(ASKED).encode()))
            if outcome.status.value in ("used", "empty"):
                return "\n".join(note.text for note in outcome.notes)
            await asyncio.sleep(0.05)


async def test_summaries_are_on_by_default(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        assert parts.settings.memory.has_summaries
        await summarised(parts)
        assert "Rügen" in await given(parts)


@asynccontextmanager
async def deriving(parts: Parts) -> AsyncIterator[tuple[asyncio.TaskGroup, asyncio.Event]]:
    """The loops of a worker that make something of what was learnt; they end at the event."""
    until = asyncio.Event()
    async with open_file_rewriter(parts) as rewriter, asyncio.timeout(20), asyncio.TaskGroup() as group:
        for work in entrypoints._derivations(parts, Readers(PlainReader()), rewriter, until):
            group.create_task(work)
        yield group, until
        until.set()


@pytest.mark.parametrize("memory", [{"summaries": {"enabled": False}}, {"learn": {"reader": "off"}}])
async def test_switched_off_none_is_recalled_or_made_and_notes_go(tmp_path: Path, memory: dict[str, Any]) -> None:
    async with opened(tmp_path, **memory) as parts:
        made, state = await summarised(parts), parts.state
        assert await given(parts) == ""
        await state.stores.notes.keep("ann", "k", PastNote("a note", (made.id,), 3), made_at=NOW - 1)
        await state.turn_log.messages.delete_message("ann", "turn:t1:0")
        async with deriving(parts):
            while await notes_of(state.stores.notes, "ann", ["k"]):
                await asyncio.sleep(0.02)
        assert await state.summaries.of_session("ann", "s1") is None


async def test_a_worker_summarises_what_is_over_and_deletes_what_was_kept_for_long(tmp_path: Path) -> None:
    """Each beside the other loops of a worker, until told to stop."""
    async with opened(tmp_path, turn_log={"keep_days": 1.0}, life={"every_hours": 0.0}) as parts:
        await learnt(parts, *BOAT)
        parts.telemetry.clock.now += 3 * 3600  # type: ignore[attr-defined]
        now, log = entrypoints.SYSTEM_CLOCK(), parts.state.turn_log
        said = (Message("user", "Hi."),)
        await log.append(Turn("fresh", Scope("bob", session_id="s2"), now, said, TurnStatus.CLOSED))
        upkeeping = open_upkeep(parts, reader=Readers(PlainReader()).ready)
        async with upkeeping as upkeep, deriving(parts) as (group, until):
            while await parts.state.summaries.of_session("ann", "s1") is None:
                await asyncio.sleep(0.02)
            for work in entrypoints._scheduled(parts, upkeep, until):
                group.create_task(work)
            while [turn async for turn in log.turns("ann")]:
                await asyncio.sleep(0.02)
        assert [turn.id async for turn in log.turns("bob")] == ["fresh"]


def says(body: dict[str, Any]) -> str:
    """The first sentence of a conversation, or the summary of a session."""
    first = body["messages"][1]["content"].partition("\n")[0]
    if "boat for Nils" in body["messages"][1]["content"]:
        return json.dumps({"title": "A boat", "summary": WRITTEN})
    text = first.partition(": ")[2]
    return json.dumps({"sentences": [{"kind": "decision", "text": text, "lines": [1]}]})


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with running_chat_server() as running:
        running.says = says
        yield running


@pytest.mark.parametrize(
    ("reader", "has_passed", "made_by"),
    [("auto", True, "m summary-"), ("auto", False, "plain 1"), ("trained", True, "plain 1")],
    ids=["it reads", "it has not passed its exam", "another is to read"],
)
async def test_the_model_that_reads_messages_writes_summaries_and_only_once_it_may_read(
    tmp_path: Path, server: FakeModelServer, reader: str, made_by: str, *, has_passed: bool
) -> None:
    async with opened(tmp_path, server, learn={"reader": reader}) as parts:
        await learnt(parts, *BOAT)
        state = parts.state
        await state.summaries.end("ann", "s1")
        await examined_with(parts.settings, state.exams, has_passed=has_passed)
        assert await summarizer_of(parts, Readers(PlainReader())).work() == 1
        found = await state.summaries.of_session("ann", "s1")
    assert found is not None
    assert found.made_by.startswith(made_by)
    is_written = made_by != "plain 1"
    assert (found.text == WRITTEN, [asked["model"] for asked in server.asked]) == (is_written, ["m"] * is_written)


@pytest.mark.parametrize(("compaction", "is_written"), [({}, True), ({"writer": "off"}, False)])
async def test_the_filter_s_states_are_written_unless_that_is_switched_off(
    tmp_path: Path, server: FakeModelServer, compaction: dict[str, str], *, is_written: bool
) -> None:
    async with opened(tmp_path, server, learn={"reader": "model"}, compaction=compaction) as parts:
        await compactor_of(parts).compact(FIRST.resent(102, "ann"))
        assert parts.metrics.compactions.labels("made")._value.get() == 1
        assert parts.metrics.compaction_writings.labels("written")._value.get() == is_written
        assert bool(server.asked) is is_written
