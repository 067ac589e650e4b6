"""What is exported and imported again is the same, on every store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from absent_stores import memory_bank
from hashing_embedder import HashingEmbedder
from memory_rows import DIMENSION, memory
from token_counts import counted_tokens
from turn_logs import sqlite_deployment

from memory.errors import BadInput
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, Scope, Trust, Turn
from memory.model.derived import hanging_on
from memory.model.raw_words import answer_rows_of, embedded_text
from memory.model.withdrawn import withdrawn_of
from memory.ports import MemoryFilter, MemoryStore, UserLedger
from memory.service.imported_ids import imported_id, with_turns
from memory.service.profiles import ProfileService
from memory.service.requests import Intake
from memory.service.service_parts import ServiceParts
from memory.service.shared_projects import SharedProjects
from memory.service.transfers import Imported, MemoryTransfers

NOW = 1_750_000_000.25


def statements() -> list[Memory]:
    """Of each status, with everything that a memory may have."""
    full = memory(
        "full",
        "User's cat is called Tom, 猫",
        at=NOW - 1,
        created_at=NOW,
        updated_at=NOW + 1,
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
    old = memory("old", "User lives in Bonn", at=NOW - 9, superseded_by="new", superseded_at=NOW, invalid_at=NOW)
    archived = memory("archived", "User sails", at=NOW - 3, updated_at=NOW, status=MemoryStatus.ARCHIVED)
    new = memory("new", "User lives in Ulm", at=NOW)
    return [full, replace(old, status=MemoryStatus.SUPERSEDED), archived, new, *books()[10:]]


def books() -> list[Memory]:
    return [memory(f"m{n}", f"User read book {n}", at=NOW - n) for n in range(460)]


@dataclass
class System:
    """An empty one, on a store."""

    store: MemoryStore
    ledger: UserLedger
    embedder: HashingEmbedder
    profiles: ProfileService
    transfers: MemoryTransfers

    async def forget(self, user_id: str, *memory_ids: str) -> None:
        async with self.ledger.write(user_id) as held:
            await held.forget(memory_ids)
            await self.store.delete(user_id, memory_ids)


@pytest.fixture
async def bank(store: MemoryStore, tmp_path: Path) -> AsyncIterator[System]:
    deployment, embedder = sqlite_deployment(tmp_path), HashingEmbedder(dimension=DIMENSION)
    deployment.clock.now = NOW
    async with deployment.start() as process:
        intake = Intake(deployment.clock, lambda: "new", str, counted_tokens())
        parts = ServiceParts(memory_bank(store, process.ledger, embedder), process.log, process.stores, intake)
        profiles = ProfileService(parts)
        transfers = MemoryTransfers(parts, profiles, SharedProjects(parts))
        yield System(store, process.ledger, embedder, profiles, transfers)


async def put(bank: System, memories: list[Memory]) -> None:
    vectors = await bank.embedder.embed([memory.content for memory in memories], is_urgent=False)
    await bank.store.apply(memories[0].user_id, [Change(ChangeKind.CREATE, one) for one in memories], vectors)


async def exported(bank: System, user_id: str = "ann") -> list[bytes]:
    return [line async for line in bank.transfers.export(user_id)]


async def load(bank: System, lines: Iterable[bytes], user_id: str = "ann") -> Imported:
    async def given() -> AsyncIterator[bytes]:
        for line in lines:
            yield line

    return await bank.transfers.load(user_id, given())


async def found(bank: System) -> list[tuple[str, float]]:
    """Among those that are not of the many, so that no tie decides what is found."""
    questions = await bank.embedder.embed(["User lives in Ulm", "User's cat is called Tom, 猫"], is_urgent=True)
    results = [await bank.store.search(MemoryFilter("ann"), one, limit=500) for one in questions]
    few = [one for result in results for one in result if one.memory.created_at > NOW - 5]
    return [(one.memory.content, round(one.score, 5)) for one in few]


async def test_an_empty_system_gets_the_same_memories_and_finds_the_same(bank: System) -> None:
    given = statements()
    await put(bank, given)
    lines, results = await exported(bank), await found(bank)
    await bank.store.delete("ann", [memory.id for memory in given])
    assert len(await exported(bank)) == 1
    assert await load(bank, lines) == Imported(stored=len(given))
    assert len(await exported(bank)) == len(lines)
    assert len(results) == 4
    assert await found(bank) == results
    records = await bank.store.get("ann", [imported_id("ann", memory.id) for memory in given])
    assert [record.memory for record in records] == [as_imported(memory) for memory in given]


def as_imported(memory: Memory, user_id: str = "ann") -> Memory:
    """In a system that does not know it."""
    successor = imported_id(user_id, memory.superseded_by) if memory.superseded_by else ""
    here = with_turns(user_id, memory, own=())
    return replace(here, id=imported_id(user_id, memory.id), user_id=user_id, superseded_by=successor)


async def test_an_answer_is_embedded_as_the_worker_embeds_it(bank: System) -> None:
    turn = Turn("t1", Scope("ann", session_id="s1"), NOW, ())
    (row,) = answer_rows_of(turn, "Try Sole.\nIt closes at ten.", question="Where can we eat?")
    await put(bank, [row])
    lines = await exported(bank)
    await bank.store.delete("ann", [row.id])
    await load(bank, lines)
    (record,) = await bank.store.load(MemoryFilter("ann", status=MemoryStatus.RAW), limit=9)
    (vector,) = await bank.embedder.embed([embedded_text(row)], is_urgent=False)
    np.testing.assert_allclose(record.vector, vector)


async def test_links_between_memories_are_kept(bank: System) -> None:
    given = [
        memory("ground"),
        memory("left", metadata={"withdrawn": {"replaced": ["ground"]}}),
        memory("seen", trust=Trust.TOOL, metadata={"reflects": ["ground"]}),
        memory("twin", status=MemoryStatus.ARCHIVED, metadata={"archived": {"of": "ground", "at": NOW}}),
    ]
    await put(bank, given)
    lines = await exported(bank)
    assert (await load(bank, lines, "bob")).stored == 4
    ids = {memory.id: imported_id("bob", memory.id) for memory in given}
    rows = [record.memory for record in await bank.store.get("bob", list(ids.values()))]
    assert [one for row in rows for one in withdrawn_of(row).replaced] == [ids["ground"]]
    assert sorted(hanging_on(rows, [ids["ground"]])) == sorted([ids["seen"], ids["twin"]])
    assert await load(bank, lines) == Imported(present=4)
    await bank.forget("bob", *ids.values())
    assert await load(bank, lines, "bob") == Imported(forgotten=4)


async def test_what_the_user_decided_about_profiles_goes_along(bank: System) -> None:
    await put(bank, statements()[:4])
    await bank.profiles.set_own("ann", pinned=["Answer in German", "- keep the dash"])
    await bank.profiles.set_own("ann", "red", pinned=["Use SI units"], is_enabled=False)
    await bank.profiles.set_own("ann", "of no memory", is_enabled=False)
    lines = await exported(bank)
    assert [json.loads(line) for line in lines[1:4]] == [
        {"kind": "profile", "project_id": "", "pinned": ["Answer in German", "- keep the dash"], "enabled": True},
        {"kind": "profile", "project_id": "of no memory", "pinned": [], "enabled": False},
        {"kind": "profile", "project_id": "red", "pinned": ["Use SI units"], "enabled": False},
    ]
    before = [await bank.profiles.own("ann"), (await bank.profiles.show("ann", "red")).text]
    await bank.store.delete("ann", [memory.id for memory in statements()[:4]])
    await bank.profiles.delete("ann")
    assert len(await exported(bank)) == 1
    assert await load(bank, lines) == Imported(stored=4, profiles=3)
    assert (await exported(bank))[:4] == lines[:4]
    assert [await bank.profiles.own("ann"), (await bank.profiles.show("ann", "red")).text] == before
    await bank.profiles.set_own("ann", pinned=["Answer in French"])
    assert await load(bank, lines) == Imported(present=4)  # what was decided here stays
    assert (await bank.profiles.own("ann"))[0].pinned == ("Answer in French",)
    assert await load(bank, lines[:2], "bob") == Imported(profiles=1)


async def test_lines_of_other_kinds_are_counted_and_not_read(bank: System) -> None:
    others = [b'{"kind":"drawing","content":"x"}', b'{"kind":"drawing"}', b'{"kind":"opt-out","since":1}']
    counts = await load(bank, [HEADER, others[0], MEMORY % (b"a", b"x"), *others[1:]])
    assert counts == Imported(stored=1, unread={"drawing": 2, "opt-out": 1})


async def test_importing_again_changes_nothing_and_restores_nothing_that_was_forgotten(bank: System) -> None:
    given = statements()[:4]
    await put(bank, given)
    lines = await exported(bank)
    changed = replace(given[0], content="User's cat is called Tim")
    await put(bank, [changed])
    await bank.forget("ann", "old")
    assert await load(bank, lines) == Imported(present=3, forgotten=1)
    assert [r.memory for r in await bank.store.get("ann", ["full", "old"])] == [changed]


async def test_copies_of_another_users_file_are_the_importers_own_and_take_nothing_over(bank: System) -> None:
    await put(bank, statements()[:4])
    lines = await exported(bank)
    counts = await asyncio.gather(*(load(bank, lines, user) for user in ("bob", "eve")))  # at once
    assert counts == [Imported(stored=4)] * 2
    assert await exported(bank) == lines
    for user in ("bob", "eve"):
        assert await load(bank, lines, user) == Imported(present=4)
        copies = await bank.store.get(user, [imported_id(user, memory.id) for memory in statements()[:4]])
        assert [record.memory for record in copies] == [as_imported(memory, user) for memory in statements()[:4]]


async def test_a_refusal_says_which_line_and_what_was_stored_before(bank: System) -> None:
    memories = books()[:450]
    await put(bank, memories)
    lines = await exported(bank)
    await bank.store.delete("ann", [memory.id for memory in memories])
    await put(bank, [replace(memories[0], content="was there")])
    fitting, too_large = lines[421], json.loads(lines[421])
    too_large["memory"]["attribute"] = "a" * 20_000
    lines[421] = json.dumps(too_large).encode()
    with pytest.raises(BadInput, match=r"^line 422: claim is larger than .* 399 were stored, 1 were there"):
        await load(bank, lines)
    assert len(await exported(bank)) == 1 + 400
    lines[421], lines[250] = fitting, b"{"
    with pytest.raises(BadInput, match=r"^line 251 is not one .* 0 were stored, 200 were there"):
        await load(bank, lines)


HEADER = b'{"kind":"memproxy-export","user_id":"ann","version":1}'
MEMORY = (
    b'{"kind":"memory","memory":{"id":"%s","user_id":"ann","content":"%s","created_at":1,"updated_at":1,"said_at":1}}'
)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "empty"),
        *(([first], "line 1") for first in (b"{}", MEMORY % (b"a", b"x"), HEADER.replace(b"1", b"2"))),
        *(([HEADER, second], "line 2") for second in (b"{", b"{}", b'{"kind":""}')),
        ([HEADER, MEMORY % (b"a", b"x"), MEMORY % (b"b", b" ")], "line 3: content"),
        ([HEADER, MEMORY % (b" a", b"x")], "line 2 has an id"),
        ([HEADER, b'{"kind":"profile","pinned":["a\\nb"]}'], "line 2: pinned line 1"),
        ([HEADER, b'{"kind":"profile","project_id":" x","pinned":["a"]}'], "line 2: project_id"),
        ([HEADER, b'{"kind":"profile","pinned":["a"],"lines":[]}'], "line 2"),
        ([HEADER, b"", b'{"kind":"profile","pinned":%s}' % json.dumps(["x"] * 11).encode()], "line 3: pinned"),
        ([HEADER, MEMORY.replace(b'"id"', b'"status":"raw","id"') % (b"a", b"x")], "raw words"),
        ([HEADER, *(b'{"kind":"%d"}' % n for n in range(30))], r"^line 22: more than 20 kinds"),
    ],
)
async def test_what_is_no_export_is_refused_and_stores_nothing(bank: System, lines: list[bytes], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        await load(bank, lines)
    assert len(await exported(bank)) == 1
