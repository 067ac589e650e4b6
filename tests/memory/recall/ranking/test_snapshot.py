"""A corpus out of its snapshot ranks as the one that it came from, and what is not exactly ours is refused."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memory.model import CATEGORIES, MEMORY_TYPES, Evidence, Memory, MemoryStatus, Query, Question, Record, Scope
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import Ranked, rank
from memory.recall.ranking.rows import decoded, encoded
from memory.recall.ranking.snapshot import FORMAT, MAGIC, UnusableSnapshot, decode, encode

NOW = 1_765_800_000.0
DIMENSION = 16
STAMP = b"this code, this model"
TEXTS = (
    "Alice: I adopted a cat on Monday",
    "Bob: what is it called?",
    "Alice: Misty",
    "用户喜欢喝茶，住在上海",
    "Anna: 我昨天去了北京",
    "The rent is 900 euros since March 2024",
    "Keep answers to three bullet points",
    "Vivo en Sevilla con mi hermana",
)
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # memories have too many fields to be made smaller in time
QUESTIONS = ("What is Alice's cat called?", "我住在哪里？", "How much was the rent in 2024?")


@st.composite
def memories(draw: st.DrawFn) -> list[Memory]:
    count = draw(st.integers(1, 24))
    return [draw(one_memory(number, count)) for number in range(count)]


def one_memory(number: int, count: int) -> st.SearchStrategy[Memory]:
    status = st.sampled_from([MemoryStatus.ACTIVE, MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED])
    at = st.floats(NOW - 4e7, NOW).map(lambda value: round(value, 3))
    return st.builds(
        Memory,
        id=st.just(f"m{number}"),
        user_id=st.just("u"),
        content=st.sampled_from(TEXTS),
        created_at=at,
        updated_at=at,
        said_at=st.one_of(at, st.just(NOW - 60.0 * number)),
        project_id=st.sampled_from(["", "p", "q"]),
        session_id=st.sampled_from(["", "s1", "s2"]),
        agent_id=st.sampled_from(["", "a"]),
        memory_type=st.sampled_from(MEMORY_TYPES),
        category=st.sampled_from(CATEGORIES),
        status=status,
        importance=st.floats(0, 1),
        confidence=st.floats(0, 1),
        superseded_by=st.sampled_from(["", *(f"m{n}" for n in range(count))]),
        invalid_at=st.one_of(st.none(), at),
        expires_at=st.one_of(st.none(), at),
    )


def vectors(count: int) -> Any:
    drawn = np.random.default_rng(count).normal(size=(count, DIMENSION)).astype(np.float16).astype(np.float32)
    return drawn / np.float32(4)  # what 16 bits hold exactly


def corpus_of(found: list[Memory]) -> Corpus:
    records = (Record(memory, vector) for memory, vector in zip(found, vectors(len(found)), strict=True))
    return Corpus(records, dimension=DIMENSION)


def through_a_snapshot(corpus: Corpus) -> Corpus:
    snapshot = decode(blob_of(corpus), user_id="u", stamp=STAMP)
    assert snapshot.revision == 4
    return snapshot.corpus


def blob_of(corpus: Corpus) -> bytes:
    return encode(corpus.contents(), revision=4, user_id="u", stamp=STAMP)


def ranked(corpus: Corpus, question: str, scope: Scope, in_notes: tuple[str, ...] = ()) -> Ranked:
    return rank(corpus, Question(Query(question), scope, NOW, in_notes=in_notes), vectors(1)[0])


def agree(one: Ranked, other: Ranked) -> bool:
    """Up to the last bits of a sum, which depend on where vectors stand in memory; so alike ones may change places."""
    first, second = ({candidate.memory.id: candidate for candidate in each.candidates} for each in (one, other))
    return (
        {i: found.memory for i, found in first.items()} == {i: found.memory for i, found in second.items()}
        and np.allclose([found.score for found in first.values()], [second[i].score for i in first], atol=1e-4)
        and (one.corrections, one.in_notes) == (other.corrections, other.in_notes)
    )


@settings(max_examples=15, phases=QUICK, suppress_health_check=[HealthCheck.too_slow])
@given(memories(), st.data())
def test_it_ranks_and_changes_as_the_corpus_that_it_came_from(found: list[Memory], data: st.DataObject) -> None:
    scope = Scope("u", data.draw(st.sampled_from(["", "p"])), "s1", data.draw(st.sampled_from(["", "a"])))
    gone = data.draw(st.sets(st.sampled_from([memory.id for memory in found])))
    corpus = corpus_of(found)
    again = through_a_snapshot(corpus)
    assert blob_of(again) == blob_of(corpus)
    for question in QUESTIONS:
        assert agree(ranked(again, question, scope, ("m0", "m1")), ranked(corpus, question, scope, ("m0", "m1")))
    new = Record(replace(found[0], id="new", content="Alice: my cat Misty moved to Turin"), vectors(2)[1])
    for one in (corpus, again):
        for memory_id in gone:
            one.remove(memory_id)
        one.add(new)
    for question in QUESTIONS:
        assert agree(ranked(again, question, scope), ranked(corpus, question, scope))
    assert len(again) == len(corpus)


def test_nothing_of_a_memory_that_went_stays_in_the_blob() -> None:
    found = [memory_of("m0", "Zebediah: my locker opens with quixotically"), memory_of("m1", "I like tea")]
    corpus = corpus_of(found)
    corpus.prepare()
    corpus.remove("m0")
    blob = blob_of(corpus)
    again = through_a_snapshot(corpus)
    again.remove("m1")
    again.add(Record(memory_of("m2", "I like coffee"), vectors(1)[0]))
    assert [text in blob for text in (b"ebediah", b"quixotic", b"locker", b"tea")] == [False, False, False, True]
    assert b"I like tea" not in blob_of(again)


def memory_of(memory_id: str, content: str, **given: Any) -> Memory:
    return Memory(memory_id, "u", content, NOW, NOW, NOW, **given)


@pytest.mark.parametrize(
    "metadata", [{}, {"a": [1, {"b": None}]}, {"n": 1 << 70}, {"s": "\ud800"}, {"deep": {"list": [1.5, True, "é"]}}]
)
def test_a_memory_comes_back_equal_whatever_its_metadata(metadata: dict[str, Any]) -> None:
    memory = memory_of("m", "text", metadata=metadata, evidence=(Evidence("q", "t"),), values=("a",), is_affirmed=False)
    assert decoded(encoded(memory)) == memory


BLOB = blob_of(corpus_of([memory_of(f"m{number}", text) for number, text in enumerate(TEXTS)]))
NEWER = MAGIC + bytes([FORMAT + 1]) + BLOB[len(MAGIC) + 1 :]
OTHER = MAGIC + bytes([FORMAT]) + zlib.crc32(b"\x93\x01\x02\x03").to_bytes(4, "little") + b"\x93\x01\x02\x03"


@pytest.mark.parametrize(
    ("blob", "user_id", "stamp", "why"),
    [
        (b"", "u", STAMP, "torn"), (BLOB[: len(BLOB) // 2], "u", STAMP, "torn"), (BLOB[:-1], "u", STAMP, "torn"),
        (BLOB + b"\0", "u", STAMP, "torn"), (BLOB[:200] + b"\0" + BLOB[201:], "u", STAMP, "torn"),
        (b"SQLite format 3\0" + bytes(100), "u", STAMP, "foreign"), (BLOB, "somebody else", STAMP, "foreign"),
        (BLOB, "u", b"another model", "outdated"), (NEWER, "u", STAMP, "outdated"), (OTHER, "u", STAMP, "outdated"),
    ],
)  # fmt: skip
def test_what_is_not_exactly_ours_is_refused(blob: bytes, user_id: str, stamp: bytes, why: str) -> None:
    with pytest.raises(UnusableSnapshot) as refused:
        decode(blob, user_id=user_id, stamp=stamp)
    assert refused.value.why == why


@given(st.integers(0, len(BLOB)), st.binary(max_size=40))
def test_no_damage_gets_through(place: int, damage: bytes) -> None:
    damaged = BLOB[:place] + damage + BLOB[place + len(damage) :]
    if damaged != BLOB:
        with pytest.raises(UnusableSnapshot):
            decode(damaged, user_id="u", stamp=STAMP)
