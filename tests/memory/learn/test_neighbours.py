"""Which memories new claims are compared with: of a user with thousands, the old one that they change is among them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from hashing_embedder import HashingEmbedder
from learning_parts import Bench
from milvus_kinds import PATIENT, RealMilvus
from plain_reader import PlainReader, by_words, claim_of
from prometheus_client import CollectorRegistry
from turn_logs import START, a_turn, sqlite_deployment

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.milvus.store import MilvusStore
from memory.learn.neighbours import ALL_MAX, FOUND_MAX
from memory.model import Change, ChangeKind, Memory, MemoryStatus, Record, Relation
from memory.ports import MemoryFilter, MemoryStore, PairRelation, PairVerdict, StatementPair
from memory.runtime.metrics import Metrics

OTHERS = 1_600
DAY = 86_400.0
OLD = (
    "I live in Rome, near the river.",
    "I work at Baxter.",
    "My phone number is 5550101.",
    "My dentist appointment is on Monday.",
    "My sister lives in Bergen.",
    "I take my coffee with oat milk.",
)
SAID = (
    "I live in Oslo, near the harbour.",
    "I work at Nordwind.",
    "My phone number is 5550102.",
    "My dentist appointment is on Friday.",
    "My cousin lives in Lima.",
    "I take my tea without milk.",
)


def moves(pair: StatementPair) -> PairVerdict:
    """What no field says: the number is the only one, and the appointment the same one."""
    is_moved = (pair.older, pair.newer) in ((OLD[2], SAID[2]), (OLD[3], SAID[3]))
    return PairVerdict(PairRelation.REPLACES, 0.9) if is_moved else by_words(pair)


def others(number: int) -> list[str]:
    """Statements about other things, many with words of the old ones: rivers, jobs, phones, dentists, coffee."""
    who = (
        "The neighbour",
        "The plumber",
        "The butcher",
        "Uncle Bob",
        "The librarian",
        "邻居",
        "Der Bäcker",
        "La vecina",
    )
    does = (
        "walks near the river in",
        "wants a job in",
        "has a phone shop in",
        "has a dentist in",
        "drinks coffee in",
        "住在",
        "wohnt in",
        "estudia en",
    )
    where = ("Turin", "Leeds", "Porto", "Malmö", "Graz", "Lyon", "Gent", "Brno", "Cork", "Vigo", "Bari", "Oulu", "Kiel")
    when = (
        "on Mondays",
        "in winter",
        "at noon",
        "every spring",
        "with a friend",
        "since 2019",
        "twice a month",
        "alone",
    )
    every = [" ".join(parts) + "." for parts in itertools.product(who, does, where, when)]
    return every[:: len(every) // number][:number]


async def fill(
    store: MemoryStore, embedder: HashingEmbedder, contents: Sequence[str], *, at: float, project: str = ""
) -> None:
    """One memory a second from `at` on."""
    for start in range(0, len(contents), 500):
        batch = contents[start : start + 500]
        rows = [
            replace(a_row(f"m-{at}-{start + n}", content, at=at + n), project_id=project)
            for n, content in enumerate(batch)
        ]
        vectors = await embedder.embed([row.content for row in rows], is_urgent=False)
        await store.apply("ann", [Change(ChangeKind.CREATE, row) for row in rows], vectors)


def a_row(memory_id: str, content: str, *, at: float) -> Memory:
    """As it would stand if it had been learnt; the crowd is about other people."""
    claim = claim_of(content, a_turn("t"), made_by="")
    row = Memory(memory_id, "ann", content, created_at=at, updated_at=at, said_at=at, subject=Relation.OTHER.value)
    if claim is None:
        return row
    return replace(row, subject=claim.relation.value, attribute=claim.attribute, values=claim.values)


async def fallen(folder: Path, store: MemoryStore, *, crowd: Sequence[str], has_sets: bool = False) -> list[list[str]]:
    """What each statement supersedes, of the old ones and of a crowd that was said after them."""
    folder.mkdir()
    embedder = HashingEmbedder(dimension=384)
    await fill(store, embedder, OLD, at=START - 200 * DAY)
    await fill(store, embedder, crowd, at=START - 100 * DAY)
    bench = Bench(sqlite_deployment(folder), store=cast(Any, store), embedder=embedder, has_sets=has_sets)
    found: list[list[str]] = []
    known: set[str] = set()
    async with bench.deployment.start() as process:
        for number, said in enumerate(SAID):
            await bench.tell(process, said, session=f"s{number}")
            await bench.worker(process, reader=PlainReader(moves)).work_off()
            page = await store.page(MemoryFilter("ann", status=MemoryStatus.SUPERSEDED), limit=100, cursor="")
            now = {memory.content for memory in page.memories}
            found.append(sorted(now - known))
            known |= now
    return found


async def test_an_old_fact_falls_beside_thousands_as_it_does_beside_a_few(tmp_path: Path, milvus: RealMilvus) -> None:
    alone = await fallen(tmp_path / "few", InMemoryStore(dimension=384), crowd=())
    assert [bool(one) for one in alone] == [True] * 4 + [False] * 2, alone
    crowd = others(OTHERS)
    assert len(set(crowd)) == OTHERS > ALL_MAX
    address = milvus.address("crowd", 384)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT) as store:
        assert await fallen(tmp_path / "many", store, crowd=crowd) == alone
        assert await store.count(MemoryFilter("ann", status=MemoryStatus.SUPERSEDED)) == 4
    in_memory = InMemoryStore(dimension=384)
    assert await fallen(tmp_path / "at hand", in_memory, crowd=crowd, has_sets=True) == alone


async def test_what_a_project_holds_does_not_hide_what_belongs_to_none(tmp_path: Path) -> None:
    store, embedder = InMemoryStore(dimension=384), HashingEmbedder(dimension=384)
    await fill(
        store,
        embedder,
        [f"I {verb} Oslo {n}" for n in range(400) for verb in ("lived in", "live in")],
        at=START - 100 * DAY,
        project="kitchen",
    )
    await fill(store, embedder, ["I live in Rome, right by the river, below the old bridge."], at=START - 200 * DAY)
    bench = Bench(sqlite_deployment(tmp_path), store=store, embedder=embedder)
    async with bench.deployment.start() as process:
        await bench.tell(process, "I live in Oslo.")
        await bench.worker(process).work_off()
    found = await store.load(MemoryFilter("ann", status=MemoryStatus.SUPERSEDED), limit=10)
    assert [record.memory.content for record in found] == ["I live in Rome, right by the river, below the old bridge."]


class _Counted(InMemoryStore):
    """Counts the rows that it hands out."""

    def __init__(self) -> None:
        super().__init__(dimension=384)
        self.rows = 0

    async def nearest(self, *arguments: Any, **options: Any) -> list[Record]:
        found = await super().nearest(*arguments, **options)
        self.rows += len(found)
        return found

    async def load(self, *arguments: Any, **options: Any) -> list[Record]:
        found = await super().load(*arguments, **options)
        self.rows += len(found)
        return found


async def test_what_a_window_looks_at_has_a_bound_however_many_memories_there_are(tmp_path: Path) -> None:
    store, embedder, number = _Counted(), HashingEmbedder(dimension=384), 8_000
    crowd = [f"{text} {n}" for n, text in enumerate(itertools.islice(itertools.cycle(others(500)), number))]
    await fill(store, embedder, crowd, at=START - 100 * DAY)
    bench = Bench(sqlite_deployment(tmp_path), store=store, embedder=embedder, has_sets=False)
    async with bench.deployment.start() as process:
        await bench.tell(process, "I live in Oslo. I sold the van. My boss is Rakesh. I work at Equinor.")
        await bench.worker(process).work_off()
    assert await store.count(MemoryFilter("ann", status=None)) > number
    assert 0 < store.rows <= 2 * 2 * FOUND_MAX  # by vector and by words, before the lock and under it
