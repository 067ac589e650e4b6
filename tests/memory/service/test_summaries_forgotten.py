"""What is forgotten, whichever way, is in no summary of a session, no note that holds one, and no state of a chat."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from library_parts import NOW, Parts
from note_lookup import notes_of

from memory.model import CompactedState, Evidence, Memory, Message, PastNote, Scope, SessionSummary, Turn, TurnStatus
from memory.model.withdrawn import Withdrawn, with_withdrawn
from memory.service.summary_exclusions import WithdrawnSummaries

Forgetting = Callable[[Parts], Awaitable[object]]


@pytest.fixture
async def parts(parts: Parts) -> Parts:
    for user in ("ann", "bob"):
        await talk(parts, user)
    parts.now = NOW + 5
    return parts


async def talk(parts: Parts, user: str) -> None:
    """A session of two turns with a memory each, its summary, a note with both, and a state of the conversation."""
    for name in ("t1", "t2"):
        said, turn_id = f"My boat is {name}.", f"{user}-{name}"
        scope = Scope(user, "atlas", "s1")
        await parts.turn_log.append(Turn(turn_id, scope, NOW, (Message("user", said),), TurnStatus.CLOSED, answer="So"))
        evidence = (Evidence(said, turn_id),)
        await parts.put(Memory(f"m-{turn_id}", user, said, NOW, NOW, NOW, project_id="atlas", evidence=evidence))
    lease = await parts.lease()
    await parts.turn_log.acknowledge(lease)
    made = await summarise(parts, user)
    await parts.notes.keep(user, "k", PastNote("a note", (made.id,), 3), made_at=NOW - 1)
    await parts.notes.keep(user, "without", PastNote("another", ("m1",), 3), made_at=NOW - 1)
    await parts.states.keep(user, "k", CompactedState(3, (), "what was said", 5, 300), made_at=NOW - 1)


async def summarise(parts: Parts, user: str) -> SessionSummary:
    due = await parts.summaries.due(now=NOW + 9_999, idle_seconds=0, limit=9)
    (session,) = [one for one in due if one.user_id == user]
    turns = await parts.summaries.turns(session, limit=9)
    text = " ".join(turn.messages[0].content for turn in turns if turn.messages[0].content)
    ids = tuple(turn.id for turn in turns)
    made = SessionSummary(user, "s1", session.version + 1, "Boats", text, NOW, NOW, ids, series=session.series)
    assert await parts.summaries.put(session, made, None)
    return made


async def one_that_rested_on_it(parts: Parts) -> object:
    """Before a branch was abandoned."""
    memory = Memory("m-ann-t3", "ann", "My boat is old.", NOW, NOW, NOW, evidence=(Evidence("old", "ann-t3"),))
    await parts.put(with_withdrawn(memory, Withdrawn(evidence=(Evidence("My boat is t1.", "ann-t1"),))))
    return await parts.library.delete("ann", "m-ann-t3")


def of_conversations(call: str, what: str, **how: Any) -> Forgetting:
    return lambda parts: getattr(parts.library.conversations, call)("ann", what, **how)


@pytest.mark.parametrize(
    ("forgetting", "said_next"),
    [
        (lambda parts: parts.library.delete("ann", "m-ann-t1"), "My boat is t2."),
        (one_that_rested_on_it, "My boat is t2."),
        (lambda parts: parts.library.forget_source("ann", "ann-t1"), "My boat is t2."),
        (of_conversations("delete_message", "turn:ann-t1:0", keep_memories=True), "My boat is t2."),
        (of_conversations("trim", "s1", keep_last=2), "My boat is t2."),
        (of_conversations("delete_session", "s1", keep_memories=True), ""),
        (lambda parts: parts.library.erase("ann", "atlas"), ""),
        (lambda parts: parts.library.erase("ann"), ""),
    ],
    ids="memory rested_on_it turn message old_messages session project everything".split(),
)
async def test_forgetting_takes_the_summary_the_notes_with_it_and_the_states_of_that_user_alone(
    parts: Parts, forgetting: Forgetting, said_next: str
) -> None:
    """`said_next`: what the next summary stands on; of a deleted session none is due."""
    await forgetting(parts)
    assert await parts.summaries.of_session("ann", "s1") is None
    assert await notes_of(parts.notes, "ann", ["k"]) == {}
    assert await parts.summaries.withdrawn("ann", limit=9) == []
    assert await parts.states.find("ann", ["k"]) is None
    assert await parts.summaries.of_session("bob", "s1") is not None
    assert set(await notes_of(parts.notes, "bob", ["k"])) == {"k"}
    assert await parts.states.find("bob", ["k"]) is not None
    if said_next:
        assert (await summarise(parts, "ann")).text == said_next
    else:
        assert await parts.summaries.due(now=NOW + 9_999, idle_seconds=0, limit=9) == []


async def test_erasing_a_user_leaves_no_row_of_theirs(parts: Parts, tmp_path: Path) -> None:
    await parts.states.keep("carl", "k", CompactedState(3, (), "what was said", 5, 300), made_at=NOW - 1)
    await parts.library.erase("carl")
    assert await parts.states.find("carl", ["k"]) is None, "without a memory too"
    await parts.summaries.leave_out("ann", ["ann-t2"])
    await parts.library.erase("ann")
    with closing(sqlite3.connect(tmp_path / "turns.sqlite")) as connection:
        for table in ("session_summaries", "summaries_due", "turns_in_no_summary", "summaries_withdrawn"):
            assert set(connection.execute(f"SELECT user_id FROM {table}")) <= {("bob",)}, table


async def test_flushing_a_session_ends_it(parts: Parts) -> None:
    turn = Turn("ann-t3", Scope("ann", session_id="s2"), NOW, (Message("user", "Hi"),), TurnStatus.CLOSED)
    await parts.turn_log.append(turn)
    await parts.library.flush("ann", "s2")
    assert await parts.summaries.is_ended("ann", "s2")


async def test_the_worker_drops_notes_with_a_withdrawn_summary_and_no_others(parts: Parts) -> None:
    dropping = WithdrawnSummaries(summaries=parts.summaries, notes=parts.notes, clock=lambda: parts.now)
    assert await dropping.drop() == 0
    await parts.turn_log.messages.delete_turns("ann", ["ann-t1"])
    assert await dropping.drop("bob") == 0
    after = await summarise(parts, "ann")
    await parts.notes.keep("ann", "next", PastNote("with the next one", (after.id,), 3), made_at=parts.now)
    assert await dropping.drop() == 1
    assert set(await notes_of(parts.notes, "ann", ["k", "without", "next"])) == {"without", "next"}
    assert await parts.summaries.withdrawn(limit=9) == []
