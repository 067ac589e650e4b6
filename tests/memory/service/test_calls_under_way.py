"""Calls that were under way when others wrote: nothing that was erased, withheld or overwritten comes back.

Each test lets the other thing happen at the moment in which the call waits: for vectors, for a redaction, for a lock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from absent_stores import memory_bank
from disturbed_calls import disturb, down
from frozen_parts import Frozen
from hashing_embedder import HashingEmbedder
from library_parts import Parts, PlainSearch, sent
from memory_rows import memory
from project_members import let_in
from prometheus_client import CollectorRegistry
from turn_logs import START, Deployment, Process, sqlite_deployment

from memory.adapters.evaluation_reports import FolderOfReports
from memory.adapters.in_memory import InMemoryStore
from memory.errors import Conflict, NotFound, Unavailable
from memory.learn.retention import RetentionRules
from memory.learn.upkeep import Upkeep
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, Message, Scope
from memory.model.memories import MemoryVisibility
from memory.model.projects import ProjectRole
from memory.model.recorded import MessageFilter, Party, PartyType
from memory.ports import MemoryFilter, MemoryStore
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry
from memory.service.conversations import NewMessage
from memory.service.library import Library
from memory.service.operator import OperatorSources
from memory.service.requests import Intake, MemoryEdit, NewMemory
from memory.service.user_writes import OptedOut

MEMBERS, PUBLIC = MemoryVisibility.MEMBERS, MemoryVisibility.PUBLIC


@pytest.fixture
async def parts(parts: Parts) -> Parts:
    """olga owns the shared project apollo, ed may add to it."""
    membership = parts.library.projects.membership
    await membership.create("olga", "apollo")
    await let_in(membership, "olga", "apollo", "ed", ProjectRole.EDITOR)
    return parts


def shared(content: str, visibility: MemoryVisibility = MEMBERS) -> list[NewMemory]:
    return [NewMemory(content, project_id="apollo", visibility=visibility)]


async def rows_of(parts: Parts, user_id: str) -> list[str]:
    return list(await parts.store.ids(MemoryFilter(user_id, status=None, with_raw=True)))


async def seen_in_apollo(parts: Parts) -> list[str]:
    return [memory.content for memory in (await parts.library.projects.memories.page("olga", "apollo", limit=10)).items]


async def test_memories_of_an_erased_user_are_refused(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    library = parts.library
    for items, user in ([NewMemory("ann has a cat")], "ann"), (shared("ed has a dog"), "ed"):
        disturb(monkeypatch, parts.embedder, "embed", before=lambda user=user: library.erase(user))
        with pytest.raises((Conflict, NotFound)):
            await library.add(Scope(user), items)
        assert await rows_of(parts, user) == []
    assert await seen_in_apollo(parts) == []
    assert await library.add(Scope("ann"), [NewMemory("ann is back")])


async def test_an_import_of_an_erased_user_is_refused(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    await parts.library.add(Scope("ann"), [NewMemory("ann has a cat")])
    lines = [line async for line in parts.library.transfers.export("ann")]
    disturb(monkeypatch, parts.embedder, "embed", before=lambda: parts.library.erase("bob"))
    assert len(lines) == 2
    with pytest.raises(Conflict):
        await parts.library.transfers.load("bob", sent(lines))
    assert await rows_of(parts, "bob") == []


async def test_turns_and_messages_of_an_erased_user_are_refused(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    library, scope, user = parts.library, Scope("ann", session_id="s"), Party(PartyType.USER)
    for call in (
        partial(library.append_turn, scope, [Message("user", "I have a cat")]),
        partial(library.conversations.add, scope, [NewMessage(user, Party(PartyType.AGENT, "a"), "I have a cat")]),
    ):
        disturb(monkeypatch, library._writes, "begin", after=lambda: library.erase("ann"))
        with pytest.raises(Conflict):
            await call()
    assert [turn async for turn in parts.turn_log.turns("ann")] == []
    assert (await parts.turn_log.messages.page(MessageFilter("ann"), limit=9)).items == ()


async def test_pinned_lines_of_an_erased_user_are_refused(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    disturb(monkeypatch, parts.ledger, "erase_epoch", after=lambda: parts.library.erase("ann"))
    with pytest.raises(Conflict):
        await parts.library.profiles.set_own("ann", pinned=["Answer in German"])
    assert await parts.library.profiles.own("ann") == []


async def test_what_an_erased_user_shares_meanwhile_is_gone(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    async def share() -> None:
        with pytest.raises(NotFound):
            await parts.library.add(Scope("ed"), shared("ed has a dog"))

    disturb(monkeypatch, parts.library.projects.rows, "forget_authored", after=share)
    await parts.library.erase("ed")
    assert await seen_in_apollo(parts) == []


async def test_what_an_erased_user_founds_meanwhile_is_gone(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    membership, projects = parts.library.projects.membership, parts.library.projects.membership._projects
    disturb(monkeypatch, projects, "forget_user", after=lambda: membership.create("ed", "zeus"))
    await parts.library.erase("ed")
    assert await projects.joined("ed") == []


async def test_nothing_is_shared_once_an_opt_out_has_returned(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    disturb(monkeypatch, parts.embedder, "embed", before=lambda: parts.library.opt_outs.opt_out("ed"))
    with pytest.raises(OptedOut):
        await parts.library.add(Scope("ed"), shared("ed has a dog"))
    assert await seen_in_apollo(parts) == []


async def broken_off(parts: Parts, items: list[NewMemory], monkeypatch: pytest.MonkeyPatch) -> str:
    """A call with a key that stored its memory, and whose caller did not hear of it. The memory's id."""
    with monkeypatch.context() as patch:
        patch.setattr(parts.library._repeatable._keys, "answered", down)
        with pytest.raises(Unavailable):
            await parts.library.add(Scope("ed"), items, idempotency_key="k")
    return (await parts.library.projects.memories.page("olga", "apollo", limit=10)).items[0].id


async def test_a_repeated_call_brings_back_nothing_forgotten(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_id = await broken_off(parts, shared("ed has a dog"), monkeypatch)
    await parts.library.delete("ed", memory_id)
    assert await parts.library.add(Scope("ed"), shared("ed has a dog"), idempotency_key="k") == [memory_id]
    assert await seen_in_apollo(parts) == []


async def test_a_repeated_call_undoes_no_correction_nor_privacy(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_id = await broken_off(parts, shared("ed has a dog", PUBLIC), monkeypatch)
    await parts.library.patch("ed", memory_id, MemoryEdit(content="ed has a cat"))
    await parts.library.patch("ed", memory_id, MemoryEdit(visibility=MEMBERS))
    await parts.library.add(Scope("ed"), shared("ed has a dog", PUBLIC), idempotency_key="k")
    kept = await parts.library.get("ed", memory_id)
    assert (kept.content, kept.visibility) == ("ed has a cat", MEMBERS)


async def test_files_are_rewritten_if_an_erasure_dies_at_its_end(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    await parts.library.add(Scope("ann"), [NewMemory("ann has a cat")])
    begun, times = parts.erasures.begun, list[str]()

    async def dies_the_second_time(user_id: str, request: Any, *, part: str) -> None:
        times.append(request.id)
        if len(times) == 2:
            raise Unavailable("turn_log", "died")
        await begun(user_id, request, part=part)

    monkeypatch.setattr(parts.erasures, "begun", dies_the_second_time)
    with pytest.raises(Unavailable):
        await parts.library.erase("ann")
    assert await rows_of(parts, "ann") == []
    assert [one.id for one in await parts.erasures.pending()] == times[:1]
    monkeypatch.undo()
    again = (await parts.library.erase("ann")).request.id
    assert [one.id for one in await parts.erasures.pending()] == [times[0], again]


async def test_a_page_whose_rows_their_author_does_not_show_yet_says_how_to_go_on(parts: Parts) -> None:
    projects = parts.library.projects.membership._projects
    await parts.library.add(Scope("ed"), shared("for all to see"))
    for number in range(3):
        parts.now += 1
        words = [one for n in range(20) for one in shared(f"{number} {n} on its way")]
        entries = await projects.entries(await parts.library.add(Scope("ed"), words))
        await projects.put([replace(one, visibility=MemoryVisibility.OWNER_ONLY) for one in entries.values()])
    found, cursor = list[str](), ""
    for _ in range(5):
        page = await parts.library.projects.memories.page("olga", "apollo", limit=1, cursor=cursor)
        found, cursor = [*found, *(memory.content for memory in page.items)], page.next_cursor
        if not cursor:
            break
    assert found == ["for all to see"]


# Whoever lost the lock over a slow step overwrites nothing: the API and upkeep, too

FROZEN_SECONDS = 31.0
EMBEDDER = HashingEmbedder()
SAID = (Evidence("I like tea", "turn-1"), Evidence("I like tea", "turn-2"))
TEA = memory("tea", "I like tea", at=START, evidence=SAID)
TEA_AGAIN = replace(TEA, id="tea again", content="I like tea!", said_at=START + 1)


@dataclass
class Here:
    deployment: Deployment
    store: InMemoryStore

    def library(self, process: Process, store: MemoryStore) -> Library:
        return Library(
            memories=memory_bank(store, process.ledger, EMBEDDER),
            turn_log=process.log,
            stores=process.stores,
            searcher=PlainSearch(EMBEDDER, self.store),
            sources=OperatorSources(FolderOfReports(Path())),
            intake=Intake(self.deployment.clock, lambda: "new", str, len),
        )

    async def put(self, *memories: Memory) -> None:
        vectors = await EMBEDDER.embed([memory.content for memory in memories], is_urgent=False)
        await self.store.apply("ann", [Change(ChangeKind.UPDATE, one) for one in memories], np.asarray(vectors))

    async def rows(self) -> dict[str, Memory]:
        return {r.memory.id: r.memory for r in await self.store.get("ann", ["tea", "tea again", "new"])}


Work = Callable[[Here, Process, MemoryStore], Awaitable[Any]]


def of_library(call: str, *arguments: Any, **options: Any) -> Work:
    return lambda here, process, store: getattr(here.library(process, store), call)(*arguments, **options)


patch = of_library("patch", "ann", "tea", MemoryEdit(importance=0.9))
forget_source = of_library("forget_source", "ann", "turn-1")
add = of_library("add", Scope("ann"), [NewMemory("I like coffee")])


def look_after(here: Here, process: Process, store: MemoryStore) -> Awaitable[Any]:
    telemetry = Telemetry(here.deployment.clock, Metrics(CollectorRegistry()))
    bank = memory_bank(store, process.ledger, EMBEDDER)
    return Upkeep(memories=bank, stores=process.stores, telemetry=telemetry, rules=RetentionRules()).run("ann")


@pytest.mark.parametrize(
    ("work", "frozen_in", "number"),
    [
        (patch, "get", 2),
        (patch, "apply", 1),
        (forget_source, "get", 1),
        (forget_source, "apply", 1),
        (look_after, "get", 1),
        (look_after, "apply", 1),
        (add, "apply", 1),
    ],
)
async def test_what_others_wrote_meanwhile_stands(tmp_path: Path, work: Work, frozen_in: str, number: int) -> None:
    here = Here(sqlite_deployment(tmp_path), InMemoryStore(dimension=EMBEDDER.dimension))
    await here.put(TEA, TEA_AGAIN)
    gone = replace(TEA, status=MemoryStatus.SUPERSEDED, superseded_by="coffee", updated_at=START + 9)
    gone_again = replace(TEA_AGAIN, importance=0.1, updated_at=START + 9)
    async with here.deployment.start() as frozen, here.deployment.start() as other:

        async def others_write() -> None:
            here.deployment.clock.now += FROZEN_SECONDS
            async with other.ledger.write("ann") as held:
                held.touch(["tea", "tea again"])
                await here.put(gone, gone_again)

        store = Frozen(here.store, frozen_in, others_write, number=number)
        with pytest.raises(Conflict):
            await work(here, frozen, cast(Any, store))
        assert await here.rows() == {"tea": gone, "tea again": gone_again}
        assert store.has_arrived is (frozen_in == "get")
        assert (await other.ledger.revision("ann")).is_settled
