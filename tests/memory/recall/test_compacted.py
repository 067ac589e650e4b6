"""What a long conversation becomes: with a state, if it is there and may be used; with its notes where they stood."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_shapes import read_response
from disturbed_calls import down
from long_chats import FIRST
from plain_compactor import plain_compactor
from recall_rig import SETTINGS, Rig, request_with, rigged

from memory.adapters.sql.notes import SqlCompactedStates
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.chat import history
from memory.chat.completions import ChatRequest
from memory.chat.history import clean_cuts
from memory.learn.readers import OffReader
from memory.model import HEAVY_BODY_BYTES, Placement, RecallStatus, Scope
from memory.ports import ResentHistory
from memory.recall import pipeline
from memory.recall.pipeline import RecallOutcome
from memory.runtime.tracing import Telemetry

NOW = 1_750_000_000.0
KAYAK = {"role": "user", "content": "Where is my kayak stored?"}
HISTORY = FIRST.messages()[:101]


def redacted(text: str) -> str:
    return re.sub("(?s)-----BEGIN.*?END KEY-----|7,400", "[redacted]", text)


class CompactingRig:
    """Recall with states, and a compactor."""

    def __init__(self, rig: Rig, states: SqlCompactedStates) -> None:
        self.rig, self.states, self.reader, self.now = rig, states, OffReader(), NOW
        rig.recall._review._states = states
        self.prepared: list[ResentHistory] = []
        rig.recall._prepare = self.prepared.append
        telemetry = Telemetry(lambda: self.now, rig.metrics)
        self.compactor = plain_compactor(states, telemetry, reader=self.reader, redact=redacted)

    async def ask(self, request: ChatRequest, *, prepares: bool = True) -> RecallOutcome:
        self.prepared.clear()
        outcome = await self.rig.recall.recall(Scope("u"), request)
        for resent in self.prepared if prepares else ():
            await self.compactor.compact(resent)
        return outcome

    def outcomes(self, kind: str) -> float:
        return self.rig.metrics.compactions.labels(kind)._value.get()


@pytest.fixture
async def compacting(tmp_path: Path) -> AsyncIterator[CompactingRig]:
    async with rigged(tmp_path) as rig, SqliteDatabase(tmp_path / "turns.sqlite") as database:
        yield CompactingRig(rig, SqlCompactedStates(database))


def request(*later: dict[str, Any], history: list[dict[str, Any]] = HISTORY, **config: object) -> ChatRequest:
    return request_with([*history, *later], **{"compact": True, **config})


NEXT = ({"role": "user", "content": "How do I seal the deck?"}, {"role": "assistant", "content": "With oil."}, KAYAK)


async def test_the_next_question_finds_the_state_and_its_notes_stand_in_what_is_kept(compacting: CompactingRig) -> None:
    assert (await compacting.ask(request(NEXT[0]))).compacted is None
    assert compacting.outcomes("made") == 1
    later = await compacting.ask(request(*NEXT))
    assert "Kesselhaus" in later.compacted.text
    assert later.notes, "memories go along as in any chat"
    assert all(note.before >= later.compacted.end for note in later.notes)
    signals = (await compacting.rig.receipt(later)).signals
    assert signals["compacted_messages"] == later.compacted.end
    assert compacting.rig.metrics.compacted_tokens_saved._value.get() == signals["tokens_saved"] > 3_000
    assert (await compacting.ask(request(*NEXT))).compacted == later.compacted


async def test_a_state_made_at_once_is_the_state_made_turn_by_turn(compacting: CompactingRig, tmp_path: Path) -> None:
    for end in range(3, len(HISTORY), 14):
        await compacting.ask(request(history=HISTORY[:end]))
    await compacting.ask(request(NEXT[0]))
    step_by_step = (await compacting.ask(request(*NEXT))).compacted
    async with rigged(tmp_path) as rig, SqliteDatabase(tmp_path / "others.sqlite") as database:
        other = CompactingRig(rig, SqlCompactedStates(database))
        await other.ask(request(NEXT[0]))
        assert (await other.ask(request(*NEXT))).compacted == step_by_step
    assert step_by_step is not None


async def test_secrets_are_redacted_before_a_state_is_stored_and_leave_no_line(compacting: CompactingRig) -> None:
    block = "-----BEGIN KEY-----\nLine1 is Kx99AbQ7.\nLine2 is Zq81BcR4.\n-----END KEY-----"
    history = [{**one, "content": f"{one['content']}\n{block}"} if one["role"] == "user" else one for one in HISTORY]
    await compacting.ask(request(NEXT[0], history=history))
    found = (await compacting.ask(request(*NEXT, history=history))).compacted
    assert "[redacted]" in found.text
    assert not any(secret in found.text for secret in ("7,400", "Kx99AbQ7", "Zq81BcR4"))


@pytest.mark.parametrize(
    ("config", "is_shadow"),
    [
        *(({"compact": wanted}, False) for wanted in (False, None)),
        *(({"auto_store": False}, False), ({"placement": "off"}, False), ({"enabled": False}, False), ({}, True)),
    ],
)
async def test_what_is_not_compacted(compacting: CompactingRig, config: dict[str, object], *, is_shadow: bool) -> None:
    await compacting.ask(request(NEXT[0]))
    compacting.rig.recall._settings = replace(SETTINGS, is_shadow=is_shadow)
    assert ((await compacting.ask(request(*NEXT, **config))).compacted, compacting.prepared) == (None, [])


async def test_a_conversation_that_the_server_stores_has_nothing_to_compact(compacting: CompactingRig) -> None:
    resent = read_response([KAYAK], previous_response_id="resp_1", memory_config={"compact": True})
    assert ((await compacting.ask(resent)).compacted, compacting.prepared) == (None, [])


async def test_a_stray_result_or_a_model_without_system_messages_brings_all_back(compacting: CompactingRig) -> None:
    await compacting.ask(request(NEXT[0]))
    stray = {"role": "tool", "tool_call_id": "of-long-ago", "content": "42"}
    assert (await compacting.ask(request(*NEXT[:2], stray, KAYAK))).compacted is None
    assert (await compacting.ask(request(*NEXT))).compacted is not None
    await compacting.rig.model_capabilities.learn("m", Placement.OFF)
    assert (await compacting.ask(request(*NEXT))).compacted is None


async def test_an_outage_of_states_costs_no_chat(compacting: CompactingRig, monkeypatch: pytest.MonkeyPatch) -> None:
    for times, (part, call) in enumerate(((compacting.reader, "read"), (compacting.states, "keep")), 1):
        with monkeypatch.context() as broken:
            broken.setattr(part, call, down)
            await compacting.ask(request(NEXT[0]))
        assert compacting.outcomes("failed") == times
        assert (await compacting.ask(request(*NEXT), prepares=False)).compacted is None
    monkeypatch.setattr(compacting.states, "find", down)
    found = await compacting.ask(request(*NEXT), prepares=False)
    assert (found.compacted, found.status) == (None, RecallStatus.USED)


async def test_a_compacted_history_leaves_its_tokens_to_the_notes(compacting: CompactingRig) -> None:
    compacting.rig.recall._review._windows.learn("m", 3_500)
    assert (await compacting.ask(request(NEXT[0]))).notes == (), "the full history fills the window"
    assert (await compacting.ask(request(*NEXT))).notes != ()


async def test_a_dropped_state_is_not_made_again_by_a_request_that_found_it_before(compacting: CompactingRig) -> None:
    """The request looks, the user forgets, and only then is the next state prepared, of the one that was found."""
    whole = FIRST.messages()
    await compacting.ask(request(history=whole[:102]))
    assert (await compacting.ask(request(history=whole[:142]), prepares=False)).compacted is not None
    compacting.now = NOW + 1
    await compacting.states.drop("u", now=compacting.now)
    compacting.now = NOW + 2
    compacting.compactor.prepare(compacting.prepared[0])

    async def stopping(work: Coroutine[Any, Any, None]) -> None:
        await work
        raise asyncio.CancelledError

    with suppress(asyncio.CancelledError):
        await compacting.compactor.run(stopping)
    assert compacting.outcomes("made") == 2, "it was due"
    assert (await compacting.ask(request(history=whole[:144]), prepares=False)).compacted is None


async def test_a_heavy_history_is_cut_in_a_thread(compacting: CompactingRig, monkeypatch: pytest.MonkeyPatch) -> None:
    places: dict[str, int] = {}

    def recorded(asked: ChatRequest) -> frozenset[int]:
        places["clean_cuts"] = threading.get_ident()
        return clean_cuts(asked)

    await compacting.ask(request(NEXT[0]))
    monkeypatch.setattr(history, "clean_cuts", recorded)
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]}
    results = [call, {"role": "tool", "tool_call_id": "c", "content": "42 " * (HEAVY_BODY_BYTES // 2)}]
    heavy = await compacting.ask(request(*NEXT[:2], *results, KAYAK), prepares=False)
    assert (heavy.compacted is not None, places["clean_cuts"] != threading.get_ident()) == (True, True)


MIB = 1 << 20
ANSWERED = {"role": "assistant", "content": "At the boathouse."}
ON = {"role": "user", "content": "And what did that cost?"}


def history_of(size: int) -> list[dict[str, Any]]:
    """Messages by turns that make a body of about so many bytes."""
    roles, play = ("user", "assistant"), "All work and no play. " * 450
    return [{"role": roles[n % 2], "content": f"Page {n}. {play}"} for n in range(size // 10_000)]


async def recalled(rig: Rig, *messages: dict[str, Any]) -> RecallOutcome:
    return await rig.recall.recall(Scope("u"), request_with(messages))


async def test_a_note_of_a_conversation_of_two_mib_is_put_back_where_it_stood(rig: Rig) -> None:
    history = history_of(2 * MIB)
    first = await recalled(rig, *history, KAYAK)
    assert (first.status, first.reason) == (RecallStatus.USED, "found")
    later = await recalled(rig, *history, KAYAK, ANSWERED, ON)
    assert later.notes[0] == first.notes[0]
    assert later.notes[0].before == len(history)
    history[10] = {**history[10], "content": history[10]["content"] + "!"}
    other = await recalled(rig, *history, KAYAK, ANSWERED, {"role": "user", "content": "thanks"})
    assert (other.status, other.notes) == (RecallStatus.SKIPPED, ())


@pytest.mark.parametrize(("size", "is_threaded"), [(20_000, False), (2 * MIB, True)])
async def test_only_what_takes_long_to_hash_is_hashed_beside_the_loop(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, size: int, *, is_threaded: bool
) -> None:
    loops: list[bool] = []
    note_keys = pipeline.note_keys

    def watched(*arguments: Any) -> dict[int, str]:
        loops.append(threading.current_thread() is threading.main_thread())
        return note_keys(*arguments)

    monkeypatch.setattr(pipeline, "note_keys", watched)
    await recalled(rig, *history_of(size), KAYAK)
    assert loops == [not is_threaded]
