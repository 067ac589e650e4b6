"""What is forgotten is in no summary of a session, nor in a note that holds one, whichever way it is forgotten."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
from library_parts import NOW, Parts, library_parts

from memory.errors import NotFound
from memory.model import Evidence, Memory, Message, PastNote, Scope, SessionSummary, Turn, TurnStatus
from memory.model.withdrawn import Withdrawn, with_withdrawn

Forgetting = Callable[[Parts], Awaitable[object]]


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as running:
        for user in ("ann", "bob"):
            await talk(running, user)
        running.now = NOW + 5
        yield running


async def talk(parts: Parts, user: str) -> None:
    """A session of two turns with a memory each, its summary, and a note with both."""
    for name in ("t1", "t2"):
        said, turn_id = f"My boat is {name}.", f"{user}-{name}"
        scope = Scope(user, "atlas", "s1")
        turn = Turn(turn_id, scope, NOW, (Message("user", said),), TurnStatus.CLOSED, answer="So")
        await parts.turn_log.append(turn)
        evidence = (Evidence(said, turn_id),)
        await parts.put(Memory(f"m-{turn_id}", user, said, NOW, NOW, NOW, project_id="atlas", evidence=evidence))
    lease = await parts.lease()
    assert lease is not None
    await parts.turn_log.acknowledge(lease)
    made = await summarise(parts, user)
    await parts.notes.keep(user, "k", PastNote("a note", (made.id,), 3), made_at=NOW - 1)


async def summarise(parts: Parts, user: str) -> SessionSummary:
    due = await parts.summaries.due(now=NOW + 9_999, idle_seconds=0, limit=9)
    (session,) = [one for one in due if one.user_id == user]
    turns = await parts.summaries.turns(session, limit=9)
    text = " ".join(turn.messages[0].content for turn in turns if turn.messages[0].content)
    ids = tuple(turn.id for turn in turns)
    made = SessionSummary(user, "s1", session.version + 1, "Boats", text, NOW, NOW, ids, series=session.series)
    assert await parts.summaries.put(session, made, None)
    return made


async def one_memory(parts: Parts) -> object:
    return await parts.library.delete("ann", "m-ann-t1")


async def one_that_rested_on_it(parts: Parts) -> object:
    """Before a branch was abandoned."""
    memory = Memory("m-ann-t3", "ann", "My boat is old.", NOW, NOW, NOW, evidence=(Evidence("old", "ann-t3"),))
    await parts.put(with_withdrawn(memory, Withdrawn(evidence=(Evidence("My boat is t1.", "ann-t1"),))))
    return await parts.library.delete("ann", "m-ann-t3")


async def one_turn(parts: Parts) -> object:
    return await parts.library.forget_source("ann", "ann-t1")


async def one_message(parts: Parts) -> object:
    return await parts.library.conversations.delete_message("ann", "turn:ann-t1:0", keep_memories=True)


async def old_messages(parts: Parts) -> object:
    return await parts.library.conversations.trim("ann", "s1", keep_last=2)


async def the_session(parts: Parts) -> object:
    return await parts.library.conversations.delete_session("ann", "s1", keep_memories=True)


async def the_project(parts: Parts) -> object:
    return await parts.library.delete_scope("ann", "atlas")


async def everything(parts: Parts) -> object:
    return await parts.library.delete_scope("ann")


@pytest.mark.parametrize(
    "forgetting",
    [one_memory, one_that_rested_on_it, one_turn, one_message, old_messages, the_session, the_project, everything],
)
async def test_forgetting_takes_the_summary_and_the_notes_with_it_of_that_user_alone(
    parts: Parts, forgetting: Forgetting
) -> None:
    await forgetting(parts)
    assert await parts.summaries.of_session("ann", "s1") is None
    assert await parts.notes.find("ann", ["k"]) == {}
    assert await parts.summaries.withdrawn("ann", limit=9) == []
    assert await parts.summaries.of_session("bob", "s1") is not None
    assert set(await parts.notes.find("bob", ["k"])) == {"k"}


@pytest.mark.parametrize("forgetting", [one_memory, one_that_rested_on_it, one_turn, one_message])
async def test_the_next_summary_stands_on_the_rest(parts: Parts, forgetting: Forgetting) -> None:
    await forgetting(parts)
    assert (await summarise(parts, "ann")).text == "My boat is t2."


@pytest.mark.parametrize("forgetting", [the_session, the_project, everything])
async def test_of_a_deleted_session_none_is_due(parts: Parts, forgetting: Forgetting) -> None:
    await forgetting(parts)
    assert await parts.summaries.due(now=NOW + 9_999, idle_seconds=0, limit=9) == []


async def test_erasing_a_user_leaves_no_row_of_theirs(parts: Parts, tmp_path: Path) -> None:
    await parts.summaries.leave_out("ann", ["ann-t2"])
    await everything(parts)
    with closing(sqlite3.connect(tmp_path / "turns.sqlite")) as connection:
        for table in ("session_summaries", "summaries_due", "turns_in_no_summary", "summaries_withdrawn"):
            statement = f"SELECT user_id FROM {table}"
            assert set(connection.execute(statement)) <= {("bob",)}, table


async def test_an_ended_session_says_so_until_it_goes_on(parts: Parts) -> None:
    conversations = parts.library.conversations
    await parts.turn_log.append(
        Turn("ann-t3", Scope("ann", session_id="s1"), NOW, (Message("user", "And now?"),), TurnStatus.CLOSED)
    )
    assert await conversations.is_open("ann", await conversations.session("ann", "s1"))
    await conversations.end("ann", "s1")
    assert not await conversations.is_open("ann", await conversations.session("ann", "s1"))
    with pytest.raises(NotFound):
        await conversations.end("ann", "s9")
    with pytest.raises(NotFound):
        await conversations.end("carl", "s1")


async def test_flushing_a_session_ends_it(parts: Parts) -> None:
    turn = Turn("ann-t3", Scope("ann", session_id="s2"), NOW, (Message("user", "Hi"),), TurnStatus.CLOSED)
    await parts.turn_log.append(turn)
    await parts.library.flush("ann", "s2")
    assert await parts.summaries.is_ended("ann", "s2")
