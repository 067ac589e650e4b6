"""Which pairs a reader is asked about: the same subject, near in meaning, the nearest few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from claims import NOW, claim

from memory.learn.relating import PAIRS_OF_ONE_MAX, pairs_to_ask, renumbered
from memory.model import Memory, MemoryStatus, Relation, Vector
from memory.ports import PairRelation, PairVerdict

VECTOR: Vector = np.array([1.0, 0.0], dtype=np.float32)
FAR: Vector = np.array([0.0, 1.0], dtype=np.float32)


def known(content: str, **fields: Any) -> Memory:
    at = fields.pop("said_at", NOW - 9)
    fields = {"attribute": "home", **fields}
    return Memory(id=content, user_id="ann", content=content, created_at=at, updated_at=at, said_at=at, **fields)


def ids(ordinal: str) -> str:
    return f"id-{ordinal}"


NEW = claim("I live in Oslo", attribute="home")
OLD = known("I live in Leeds")


def test_the_one_that_was_said_first_is_the_older() -> None:
    vectors = {NEW.text: VECTOR, OLD.content: VECTOR}
    ((place, pair),) = pairs_to_ask([NEW], [OLD], vectors=vectors, ids=ids).items()
    assert (place, pair.older, pair.newer) == ((0, OLD.id), OLD.content, NEW.text)
    late = replace(NEW, said_at=NOW - 99)
    ((_, pair),) = pairs_to_ask([late], [OLD], vectors=vectors, ids=ids).items()
    assert (pair.older, pair.newer) == (NEW.text, OLD.content)


@pytest.mark.parametrize(
    "other",
    [
        known("I lived in Leeds", status=MemoryStatus.SUPERSEDED),
        known("I live in Leeds for the project", project_id="p"),
        known("i live in oslo!"),  # the same statement: nothing to ask
    ],
)
def test_what_cannot_be_changed_by_it_is_not_asked_about(other: Memory) -> None:
    assert pairs_to_ask([NEW], [other], vectors={NEW.text: VECTOR, other.content: VECTOR}, ids=ids) == {}


def test_what_is_said_of_two_other_people_is_not_asked_about_but_of_the_user_and_another_it_is() -> None:
    sister = known("My sister lives in Leeds", subject=Relation.SIBLING.value)
    son = claim("My son lives in Oslo", attribute="home", relation=Relation.CHILD)
    vectors = dict.fromkeys((NEW.text, son.text, sister.content), VECTOR)
    assert pairs_to_ask([son], [sister], vectors=vectors, ids=ids) == {}
    assert list(pairs_to_ask([NEW], [sister], vectors=vectors, ids=ids)) == [(0, sister.id)]


def test_what_is_far_in_meaning_is_not_asked_about() -> None:
    hobby, other = claim("I row", attribute="hobby"), known("I sing", attribute="hobby")
    assert pairs_to_ask([hobby], [other], vectors={hobby.text: VECTOR, other.content: FAR}, ids=ids) == {}


def test_two_values_of_an_attribute_that_has_one_are_asked_about_before_all_else() -> None:
    near = [known(f"Oslo is town {n}", attribute="opinion") for n in range(PAIRS_OF_ONE_MAX)]
    vectors = {NEW.text: VECTOR, OLD.content: FAR, **{row.content: VECTOR for row in near}}
    asked = [memory_id for _, memory_id in pairs_to_ask([NEW], [*near, OLD], vectors=vectors, ids=ids)]
    assert (asked[0], len(asked)) == (OLD.id, PAIRS_OF_ONE_MAX)


def test_the_nearest_few_are_asked_about() -> None:
    many = [known(f"I live in town {n}") for n in range(10)]
    near = {row.content: np.array([1.0, n / 10], dtype=np.float32) for n, row in enumerate(many)}
    near = {text: vector / np.linalg.norm(vector) for text, vector in near.items()}
    asked = pairs_to_ask([NEW], many, vectors={NEW.text: VECTOR, **near}, ids=ids)
    assert [memory_id for _, memory_id in asked] == [row.id for row in many[:PAIRS_OF_ONE_MAX]]


def test_a_claim_is_asked_about_beside_an_earlier_one_of_its_window_as_if_that_were_stored() -> None:
    earlier = claim(OLD.content, attribute="home", turn="t0", said_at=NOW - 9)
    vectors = {NEW.text: VECTOR, OLD.content: VECTOR}
    ((place, pair),) = pairs_to_ask([earlier, NEW], [], vectors=vectors, ids=ids).items()
    assert (place, pair.older, pair.newer) == ((1, "id-0"), OLD.content, NEW.text)
    ((place, pair),) = pairs_to_ask([NEW, earlier], [], vectors=vectors, ids=ids).items()
    assert (place, pair.older, pair.newer) == ((1, "id-0"), OLD.content, NEW.text)


def test_what_is_said_in_one_breath_is_not_asked_about_but_what_puts_it_right_is() -> None:
    other = claim(OLD.content, attribute="home")
    vectors = {NEW.text: VECTOR, OLD.content: VECTOR}
    assert pairs_to_ask([other, NEW], [], vectors=vectors, ids=ids) == {}
    assert list(pairs_to_ask([other, replace(NEW, category="correction")], [], vectors=vectors, ids=ids)) == [
        (1, "id-0")
    ]


def test_a_claim_that_repeats_a_memory_is_not_asked_about_twice() -> None:
    again = claim(OLD.content.upper(), attribute="home", turn="t0", said_at=NOW - 5)
    vectors = {NEW.text: VECTOR, OLD.content: VECTOR, again.text: VECTOR}
    assert list(pairs_to_ask([again, NEW], [OLD], vectors=vectors, ids=ids)) == [(1, OLD.id)]


def test_a_claim_learnt_late_is_asked_about_beside_what_was_said_after_it_though_that_is_superseded() -> None:
    until = {"status": MemoryStatus.SUPERSEDED, "invalid_at": NOW + 9}
    later = known("I live in Leeds", said_at=NOW + 5, **until)
    stood = known("I live in York", said_at=NOW - 5, **until)
    gone = known("I live in Rome", said_at=NOW - 5, status=MemoryStatus.SUPERSEDED, invalid_at=NOW - 1)
    vectors = {NEW.text: VECTOR, **{row.content: VECTOR for row in (later, stood, gone)}}
    asked = pairs_to_ask([NEW], [later, stood, gone], vectors=vectors, ids=ids)
    assert {place: (pair.older, pair.newer) for place, pair in asked.items()} == {
        (0, later.id): (NEW.text, later.content),
        (0, stood.id): (stood.content, NEW.text),
    }


def test_verdicts_keep_their_claims_where_some_of_the_window_are_no_news() -> None:
    sure, other = PairVerdict(PairRelation.REPLACES, 0.9), PairVerdict(PairRelation.SAME, 0.9)
    said = {(1, "id-0"): other, (2, "id-1"): sure, (3, "id-0"): other, (3, "row"): sure}
    assert renumbered(said, [1, 2, 3], count=4, ids=ids) == {(1, "id-0"): sure, (2, "row"): sure}
