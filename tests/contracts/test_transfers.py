"""What is exported and imported again is the same, on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hashing_embedder import HashingEmbedder
from memory_rows import DIMENSION

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.ledger import SqliteUserLedger
from memory.errors import BadInput
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, Trust
from memory.ports import MemoryBank, MemoryFilter, MemoryStore
from memory.service.transfers import Imported, MemoryTransfers

NOW = 1_750_000_000.25


def statements() -> list[Memory]:
    """Of each status, with everything that a memory may have."""
    full = Memory(
        *("full", "ann", "User's cat is called Tom, 猫", NOW, NOW + 1, NOW - 1),
        project_id="red",
        session_id="s1",
        agent_id="planner",
        memory_type="episodic",
        category="decision",
        importance=0.75,
        confidence=0.625,
        access_count=3,
        valid_from=NOW - 5,
        expires_at=NOW + 1e6,
        used_at=NOW,
        trust=Trust.EXPLICIT,
        made_by="trained-3",
        subject="cat",
        name="Tom",
        attribute="name",
        values=("Tom",),
        is_affirmed=False,
        evidence=(Evidence("my cat is Tom", "t1"), Evidence("yes", "t2", "assistant")),
        metadata={"a": [1, "x", None]},
    )
    old = Memory(
        *("old", "ann", "User lives in Bonn", NOW - 9, NOW - 9, NOW - 9),
        status=MemoryStatus.SUPERSEDED,
        superseded_by="new",
        superseded_at=NOW,
        invalid_at=NOW,
    )
    archived = Memory("archived", "ann", "User sails", NOW - 3, NOW, NOW - 3, status=MemoryStatus.ARCHIVED)
    many = [Memory(f"m{n}", "ann", f"User read book {n}", NOW - n, NOW - n, NOW - n) for n in range(10, 460)]
    return [full, old, archived, Memory("new", "ann", "User lives in Ulm", NOW, NOW, NOW), *many]


@pytest.fixture
async def bank(store: MemoryStore, tmp_path: Path) -> AsyncIterator[MemoryBank]:
    """An empty store, with a ledger of its own."""
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        yield MemoryBank(store, SqliteUserLedger(database, clock=lambda: NOW), HashingEmbedder(dimension=DIMENSION))


async def put(bank: MemoryBank, memories: list[Memory]) -> None:
    vectors = await bank.embedder.embed([memory.content for memory in memories], is_urgent=False)
    await bank.store.apply(memories[0].user_id, [Change(ChangeKind.CREATE, one) for one in memories], vectors)


async def exported(bank: MemoryBank, user_id: str = "ann") -> list[bytes]:
    return [line async for line in MemoryTransfers(bank).export(user_id)]


async def load(bank: MemoryBank, lines: Iterable[bytes], user_id: str = "ann") -> Imported:
    async def given() -> AsyncIterator[bytes]:
        for line in lines:
            yield line

    return await MemoryTransfers(bank).load(user_id, given())


async def found(bank: MemoryBank) -> list[tuple[str, float]]:
    """Among those that are not of the many, so that no tie decides what is found."""
    questions = await bank.embedder.embed(["User lives in Ulm", "User's cat is called Tom, 猫"], is_urgent=True)
    where = MemoryFilter("ann", created_after=NOW - 5)
    results = [await bank.store.search(where, one, limit=10) for one in questions]
    return [(one.memory.content, round(one.score, 5)) for result in results for one in result]


async def test_an_empty_system_gets_the_same_memories_and_finds_the_same(bank: MemoryBank) -> None:
    given = statements()
    await put(bank, given)
    lines, results = await exported(bank), await found(bank)
    await bank.store.delete("ann", [memory.id for memory in given])
    assert len(await exported(bank)) == 1
    assert await load(bank, lines) == Imported(stored=len(given))
    assert await exported(bank) == lines
    assert len(results) == 4
    assert await found(bank) == results
    records = await bank.store.get("ann", [memory.id for memory in given])
    assert [record.memory for record in records] == given


async def test_importing_again_changes_nothing_and_restores_nothing_that_was_forgotten(bank: MemoryBank) -> None:
    given = statements()[:4]
    await put(bank, given)
    lines = await exported(bank)
    changed = replace(given[0], content="User's cat is called Tim")
    await put(bank, [changed])
    async with bank.ledger.write("ann") as held:
        await held.forget(["old"])
        await bank.store.delete("ann", ["old"])
    assert await load(bank, lines) == Imported(present=3, forgotten=1)
    assert [r.memory for r in await bank.store.get("ann", ["full", "old"])] == [changed]


async def test_a_copy_of_another_users_file_is_the_importers_own_and_takes_nothing_over(bank: MemoryBank) -> None:
    await put(bank, statements()[:4])
    lines = await exported(bank)
    with pytest.raises(BadInput):
        await load(bank, lines, "bob")  # in this system the ids are ann's
    assert len(await exported(bank, "bob")) == 1
    assert await exported(bank) == lines
    await bank.store.delete("ann", ["full", "old", "archived", "new"])
    assert (await load(bank, lines, "bob")).stored == 4
    assert len(await exported(bank)) == 1


HEADER = b'{"kind":"memproxy-export","user_id":"ann","version":1}'
MEMORY = (
    b'{"kind":"memory","memory":{"id":"%s","user_id":"ann","content":"%s","created_at":1,"updated_at":1,"said_at":1}}'
)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "empty"),
        ([b"{}"], "line 1"),
        ([MEMORY % (b"a", b"x")], "line 1"),
        ([HEADER.replace(b"1", b"2")], "line 1"),
        ([HEADER, b"{"], "line 2"),
        ([HEADER, MEMORY % (b"a", b"x"), MEMORY % (b"b", b" ")], "line 3: content"),
        ([HEADER, MEMORY % (b" a", b"x")], "line 2 has an id"),
        ([HEADER, MEMORY.replace(b'"id"', b'"status":"raw","id"') % (b"a", b"x")], "raw words"),
    ],
)
async def test_a_file_that_is_no_export_is_refused_by_line_and_stores_nothing(
    bank: MemoryBank, lines: list[bytes], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        await load(bank, lines)
    assert len(await exported(bank)) == 1
