"""Which memories new claims are compared with, of however many, and which pairs of them a reader is asked about."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from claims import NOW, claim
from hashing_embedder import HashingEmbedder
from learning_parts import Bench
from memory_rows import direction, memory
from milvus_kinds import PATIENT, RealMilvus
from plain_reader import PlainReader, claim_of, moves
from prometheus_client import CollectorRegistry
from turn_logs import START, a_turn, sqlite_deployment

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.milvus.store import MilvusStore
from memory.learn.neighbours import ALL_MAX, FOUND_MAX
from memory.learn.relating import PAIRS_OF_ONE_MAX, pairs_to_ask, renumbered
from memory.model import Act, Change, ChangeKind, Claim, Evidence, Memory, MemoryStatus, Record, Relation, Vector
from memory.ports import FactContext, MemoryFilter, MemoryStore, PairRelation, PairVerdict, StatementPair
from memory.runtime.metrics import Metrics

OTHERS = 1_600
DAY = 86_400.0
SAID_SINCE = {
    "I live in Rome, near the river.": "I live in Oslo, near the harbour.",
    "I work at Baxter.": "I work at Nordwind.",
    "My phone number is 5550101.": "My phone number is 5550102.",
    "My dentist appointment is on Monday.": "My dentist appointment is on Friday.",
    "My sister lives in Bergen.": "My cousin lives in Lima.",
    "I take my coffee with oat milk.": "I take my tea without milk.",
}
OLD, SAID = tuple(SAID_SINCE), tuple(SAID_SINCE.values())


def others(number: int) -> list[str]:
    """Statements about other things, many with words of the old ones: rivers, jobs, phones, dentists, coffee."""
    who = "The neighbour|The plumber|The butcher|Uncle Bob|The librarian|邻居|Der Bäcker|La vecina".split("|")
    does = "walks near the river in|wants a job in|has a phone shop in|has a dentist in|drinks coffee in|住在|wohnt in"
    where = "Turin Leeds Porto Malmö Graz Lyon Gent Brno Cork Vigo Bari Oulu Kiel".split()
    when = "on Mondays|in winter|at noon|every spring|with a friend|since 2019|twice a month|alone|by himself".split(
        "|"
    )
    every = [" ".join(parts) + "." for parts in itertools.product(who, does.split("|"), where, when)]
    return every[:: len(every) // number][:number]


async def fill(
    store: MemoryStore, embedder: HashingEmbedder, contents: Sequence[str], *, at: float, project: str = ""
) -> None:
    """One memory a second from `at` on."""
    for start in range(0, len(contents), 500):
        batch = list(enumerate(contents[start : start + 500]))
        rows = [replace(a_row(f"m-{at}-{start + n}", said, at=at + n), project_id=project) for n, said in batch]
        vectors = await embedder.embed([row.content for row in rows], is_urgent=False)
        await store.apply("ann", [Change(ChangeKind.CREATE, row) for row in rows], vectors)


def a_row(memory_id: str, content: str, *, at: float) -> Memory:
    """As it would stand if it had been learnt; the crowd is about other people."""
    claim = claim_of(content, a_turn("t"), made_by="")
    row = memory(memory_id, content, at=at, subject=Relation.OTHER.value)
    if claim is None:
        return row
    return replace(row, subject=claim.relation.value, attribute=claim.attribute, values=claim.values)


async def fallen(folder: Path, store: MemoryStore, *, crowd: Sequence[str], has_sets: bool = False) -> list[list[str]]:
    """What each statement supersedes, of the old ones and of a crowd that was said after them."""
    embedder = HashingEmbedder(dimension=384)
    await fill(store, embedder, OLD, at=START - 200 * DAY)
    await fill(store, embedder, crowd, at=START - 100 * DAY)
    bench = Bench(sqlite_deployment(folder), store=cast(Any, store), embedder=embedder, has_sets=has_sets)
    found: list[list[str]] = []
    known: set[str] = set()
    async with bench.deployment.start() as process:
        for number, said in enumerate(SAID):
            reader = PlainReader(moves((OLD[2], SAID[2]), (OLD[3], SAID[3])))
            await bench.learn(process, said, session=f"s{number}", worker=bench.worker(process, reader=reader))
            page = await store.page(MemoryFilter("ann", status=MemoryStatus.SUPERSEDED), limit=100, cursor="")
            now = {memory.content for memory in page.items}
            found.append(sorted(now - known))
            known |= now
    return found


@pytest.fixture
async def alone(tmp_path: Path) -> list[list[str]]:
    found = await fallen(tmp_path / "few", InMemoryStore(dimension=384), crowd=())
    assert [bool(one) for one in found] == [True] * 4 + [False] * 2, found
    return found


@pytest.mark.parametrize("has_sets", [True, False])
async def test_an_old_fact_falls_beside_many_as_it_does_beside_a_few(
    tmp_path: Path, alone: list[list[str]], *, has_sets: bool
) -> None:
    crowd = others(ALL_MAX + 100)
    assert len(set(crowd)) > ALL_MAX
    assert await fallen(tmp_path / "many", InMemoryStore(dimension=384), crowd=crowd, has_sets=has_sets) == alone


@pytest.mark.full("searches a real store among 1,600 rows")
async def test_it_does_so_in_a_real_store(tmp_path: Path, alone: list[list[str]], milvus: RealMilvus) -> None:
    async with MilvusStore(
        milvus.address("crowd", 384), metrics=Metrics(CollectorRegistry()), timeouts=PATIENT
    ) as store:
        assert await fallen(tmp_path / "many", store, crowd=others(OTHERS)) == alone
        assert await store.count(MemoryFilter("ann", status=MemoryStatus.SUPERSEDED)) == 4


async def test_what_a_project_holds_does_not_hide_what_belongs_to_none(tmp_path: Path) -> None:
    store, embedder = InMemoryStore(dimension=384), HashingEmbedder(dimension=384)
    rome = "I live in Rome, right by the river, below the old bridge."
    crowd = [f"I {verb} Oslo {n}" for n in range(400) for verb in ("lived in", "live in")]
    await fill(store, embedder, crowd, at=START - 100 * DAY, project="kitchen")
    await fill(store, embedder, [rome], at=START - 200 * DAY)
    bench = Bench(sqlite_deployment(tmp_path), store=store, embedder=embedder)
    async with bench.deployment.start() as process:
        await bench.learn(process, "I live in Oslo.")
    assert await bench.contents(status=MemoryStatus.SUPERSEDED) == [rome]


class _Counted(InMemoryStore):
    """Counts the rows that it hands out."""

    rows = 0

    async def nearest(self, *arguments: Any, **options: Any) -> list[Record]:
        found = await super().nearest(*arguments, **options)
        self.rows += len(found)
        return found

    async def load(self, *arguments: Any, **options: Any) -> list[Record]:
        found = await super().load(*arguments, **options)
        self.rows += len(found)
        return found


async def test_what_a_window_looks_at_has_a_bound_however_many_memories_there_are(tmp_path: Path) -> None:
    store, embedder, number = _Counted(dimension=384), HashingEmbedder(dimension=384), 4 * FOUND_MAX
    crowd = [f"{text} {n}" for n, text in enumerate(itertools.islice(itertools.cycle(others(500)), number))]
    await fill(store, embedder, crowd, at=START - 100 * DAY)
    bench = Bench(sqlite_deployment(tmp_path), store=store, embedder=embedder, has_sets=False)
    async with bench.deployment.start() as process:
        await bench.learn(process, "I live in Oslo. I sold the van. My boss is Rakesh. I work at Equinor.")
    assert await store.count(MemoryFilter("ann", status=None)) > number
    assert 0 < store.rows <= 2 * 2 * FOUND_MAX  # by vector and by words, before the lock and under it


VECTOR, FAR = direction(1.0), direction(0.0, 1.0)


def known(content: str, **fields: Any) -> Memory:
    return memory(content, content, at=fields.pop("said_at", NOW - 9), **{"attribute": "home", **fields})


def ids(ordinal: str) -> str:
    return f"id-{ordinal}"


def asked(
    said: Sequence[Claim], rows: Sequence[Memory] = (), **vectors: Vector
) -> dict[tuple[int, str], StatementPair]:
    """The pairs, where all say much the same, but for what has a vector of its own (by its words)."""
    alike = dict.fromkeys([one.text for one in said] + [row.content for row in rows], VECTOR)
    return dict(pairs_to_ask(said, rows, vectors=alike | vectors, ids=ids))


OSLO = claim("I live in Oslo", attribute="home")
LEEDS = known("I live in Leeds")


def test_the_one_that_was_said_first_is_the_older() -> None:
    ((place, pair),) = asked([OSLO], [LEEDS]).items()
    assert (place, pair.older, pair.newer) == ((0, LEEDS.id), LEEDS.content, OSLO.text)
    ((_, pair),) = asked([replace(OSLO, said_at=NOW - 99)], [LEEDS]).items()
    assert (pair.older, pair.newer) == (OSLO.text, LEEDS.content)
    earlier = claim(LEEDS.content, attribute="home", turn="t0", said_at=NOW - 9)
    for said in ([earlier, OSLO], [OSLO, earlier]):  # of one window: as if that were stored
        ((place, pair),) = asked(said).items()
        assert (place, pair.older, pair.newer) == ((1, "id-0"), LEEDS.content, OSLO.text)


def test_what_cannot_be_changed_by_it_is_not_asked_about() -> None:
    same, gone = known("i live in oslo!"), known("I lived in Leeds", status=MemoryStatus.SUPERSEDED)
    assert asked([OSLO], [same, gone, known("I live in Leeds for the project", project_id="p")]) == {}
    sister = known("My sister lives in Leeds", subject=Relation.SIBLING.value)
    son = claim("My son lives in Oslo", attribute="home", relation=Relation.CHILD)
    assert asked([son], [sister]) == {}  # of two other people
    assert list(asked([OSLO], [sister])) == [(0, sister.id)]


def test_a_corrected_name_is_asked_about_beside_the_old_one() -> None:
    names = {"attribute": "name", "subject": Relation.PARTNER.value, "name": "Marie"}
    marie = known("My wife is called Marie", **names)
    maria = claim("My wife is called Maria", attribute="name", relation=Relation.PARTNER, name="Maria")
    assert asked([maria], [marie]) == {}
    assert list(asked([replace(maria, act=Act.CORRECT, category="correction")], [marie])) == [(0, marie.id)]


def test_the_facts_beside_a_fact_stand_in_the_order_of_their_sentence() -> None:
    sentence = "tomorrow I row, dive and sing."
    facts = {"sing": "sing", "dive": "dive", "tomorrow I row": "tomorrow I row (2025-06-06)"}
    rows = [known(said, evidence=(Evidence(sentence, "t0", clause=fact),)) for fact, said in facts.items()]
    ((_, pair), *_) = asked([OSLO], rows, **{row.content: FAR for row in rows[1:]}).items()
    assert pair.older_context == FactContext(sentence, ("tomorrow I row (2025-06-06)", "dive"))


def test_what_is_far_in_meaning_is_not_asked_about_but_a_correction_beside_all_that_its_session_said() -> None:
    hobby, other = claim("I row", attribute="hobby"), known("I sing", attribute="hobby")
    assert asked([hobby], [other], **{other.content: FAR}) == {}
    said = claim("No, Tuesday", category="correction")
    here, elsewhere = (known("The call is on Monday", session_id=session_id) for session_id in ("s", "another"))
    assert list(asked([said], [here], **{here.content: FAR})) == [(0, here.id)]
    assert asked([said], [elsewhere], **{here.content: FAR}) == {}


def test_the_nearest_few_are_asked_about_but_two_values_of_an_attribute_that_has_one_before_all_else() -> None:
    many = [known(f"I live in town {n}") for n in range(10)]
    near = {row.content: direction(1.0, n / 10) for n, row in enumerate(many)}
    assert [memory_id for _, memory_id in asked([OSLO], many, **near)] == [row.id for row in many[:PAIRS_OF_ONE_MAX]]
    others = [known(f"Oslo is town {n}", attribute="opinion") for n in range(PAIRS_OF_ONE_MAX)]
    found = [memory_id for _, memory_id in asked([OSLO], [*others, LEEDS], **{LEEDS.content: FAR})]
    assert (found[0], len(found)) == (LEEDS.id, PAIRS_OF_ONE_MAX)


def test_a_fact_is_asked_about_with_its_sentence_and_what_still_stands_of_it() -> None:
    sentence, said = "I play the cello, row, sing and dive.", "The cello is sold and I swim."
    stored = [known(fact, evidence=(Evidence(sentence, "t0", clause=fact),)) for fact in ("I play the cello", "row")]
    gone = known("sing", status=MemoryStatus.SUPERSEDED, evidence=(Evidence(sentence, "t0", clause="sing"),))
    elsewhere = known("dive", evidence=(Evidence(sentence, "another turn", clause="dive"),))
    facts = ("The cello is sold", "I swim")
    new = [replace(claim(fact), evidence=Evidence(said, "t9", clause=fact)) for fact in facts]
    vectors = {stored[0].content: VECTOR, new[0].text: VECTOR}
    ((_, pair),) = pairs_to_ask(new, [*stored, gone, elsewhere], vectors=vectors, ids=ids).items()
    assert pair == StatementPair(
        "I play the cello", "The cello is sold", FactContext(sentence, ("row",)), FactContext(said, ("I swim",)), 1.0
    )
    assert list(asked([OSLO], [LEEDS]).values()) == [StatementPair(LEEDS.content, OSLO.text, likeness=1.0)]


def test_what_is_said_in_one_breath_is_not_asked_about_but_what_puts_it_right_is_and_a_repetition_once() -> None:
    other = claim(LEEDS.content, attribute="home")
    assert asked([other, OSLO]) == {}
    assert list(asked([other, replace(OSLO, category="correction")])) == [(1, "id-0")]
    again = claim(LEEDS.content.upper(), attribute="home", turn="t0", said_at=NOW - 5)
    assert list(asked([again, OSLO], [LEEDS])) == [(1, LEEDS.id)]


def test_a_claim_learnt_late_is_asked_about_beside_what_was_said_after_it_though_that_is_superseded() -> None:
    until = {"status": MemoryStatus.SUPERSEDED, "invalid_at": NOW + 9}
    later = known("I live in Leeds", said_at=NOW + 5, **until)
    stood = known("I live in York", said_at=NOW - 5, **until)
    gone = known("I live in Rome", said_at=NOW - 5, status=MemoryStatus.SUPERSEDED, invalid_at=NOW - 1)
    pairs = asked([OSLO], [later, stood, gone])
    assert {place: (pair.older, pair.newer) for place, pair in pairs.items()} == {
        (0, later.id): (OSLO.text, later.content),
        (0, stood.id): (stood.content, OSLO.text),
    }


def test_verdicts_keep_their_claims_where_some_of_the_window_are_no_news() -> None:
    sure, other = PairVerdict(PairRelation.REPLACES, 0.9), PairVerdict(PairRelation.SAME, 0.9)
    said = {(1, "id-0"): other, (2, "id-1"): sure, (3, "id-0"): other, (3, "row"): sure}
    assert renumbered(said, [1, 2, 3], count=4, ids=ids) == {(1, "id-0"): sure, (2, "row"): sure}
