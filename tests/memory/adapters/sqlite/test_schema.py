"""A turn log that an older release wrote is brought up to date when it is opened, and nothing in it is lost."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from turn_logs import START, ids_of, lease_at, sqlite_deployment

from memory.adapters.sqlite.schema import APPLICATION_ID, MIGRATIONS
from memory.model import Urgency
from memory.ports import LearnDue

PATIENT = LearnDue(batch_turns_max=10, idle_seconds=30.0, turns_at_once=10, tokens_at_once=1_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One user's sessions as version 1 kept them: quiet, hurried, large, and one with a dead letter."""
    connection = sqlite3.connect(tmp_path / "turns.sqlite", isolation_level=None)
    for statement in MIGRATIONS[0]:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    stages = (("quiet", "ready"), ("hurried", "ready"), ("large", "ready"), ("dead", "window"), ("old", "learnt"))
    for seq, (session, stage) in enumerate(stages, start=1):
        words = "x" * 5_000 if session == "large" else "words"
        connection.execute(
            """
            INSERT INTO turns
            VALUES (?1, ?2, 'ann', '', ?3, '', x'', x'', x'', ?4, ?4, ?4, ?4, 'closed', ?5, '', ?6, ?7, ?8)
            """,
            (seq, f"t-{session}", session, START, stage, "w" if stage == "window" else None,
             f'[["user","{words}",false]]'.encode(), b"answer"),
        )  # fmt: skip
        if stage == "ready":
            values = ("ann", session, seq, 1, START, START, session == "hurried")
            connection.execute("INSERT INTO ready_sessions VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    connection.execute(
        "INSERT INTO windows VALUES ('w', 'ann', 'dead', 4, 1, ?1, 'dead', 0, 8, NULL, NULL, x'00', 'why', ?1)",
        (START,),
    )
    connection.close()
    return tmp_path


async def test_what_an_older_release_wrote_is_all_there_and_due_as_it_was(folder: Path) -> None:
    async with sqlite_deployment(folder).start() as process:
        log = process.log
        told = [turn.id async for turn in log.turns("ann")]
        assert told == ["t-quiet", "t-hurried", "t-large", "t-dead", "t-old"]
        assert {turn.messages[0].content async for turn in log.turns("ann", session_id="quiet")} == {"words"}
        (letter,) = await log.dead_letters(limit=9)
        assert (letter.turn_ids, letter.reason, letter.attempts) == (("t-dead",), "why", 8)
        windows = []
        while (lease := await lease_at(log, START, PATIENT)) is not None:
            windows.append(ids_of(lease))
            await log.acknowledge(lease)
        assert windows == [["t-hurried"], ["t-large"]]
        assert ids_of(await lease_at(log, START + 30, PATIENT)) == ["t-quiet"]


async def test_what_waited_in_it_is_looked_at_like_what_comes_now(folder: Path) -> None:
    async with sqlite_deployment(folder).start() as process:
        found = await process.log.unexamined(limit=9)
        assert [fresh.turn.id for fresh in found] == ["t-quiet", "t-hurried", "t-large"]
        await process.log.mark({"t-quiet": Urgency(0.5, is_explicit=True)})
        assert ids_of(await lease_at(process.log, START, PATIENT)) == ["t-quiet"]


async def test_opening_it_again_changes_nothing_more(folder: Path) -> None:
    for _ in range(2):
        async with sqlite_deployment(folder).start() as process:
            assert (await process.log.depth(now=START)).due == 3
    connection = sqlite3.connect(folder / "turns.sqlite")
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    connection.close()
