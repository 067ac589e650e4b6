"""Which pairs a reader is asked about: the same subject, near in meaning, the nearest few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from claims import NOW, claim

from memory.learn.relating import PAIRS_OF_ONE_MAX, pairs_to_ask
from memory.model import Memory, MemoryStatus, Relation, Vector

VECTOR: Vector = np.array([1.0, 0.0], dtype=np.float32)
FAR: Vector = np.array([0.0, 1.0], dtype=np.float32)


def known(content: str, **fields: Any) -> Memory:
    at = fields.pop("said_at", NOW - 9)
    fields = {"attribute": "home", **fields}
    return Memory(id=content, user_id="ann", content=content, created_at=at, updated_at=at, said_at=at, **fields)


NEW = claim("I live in Oslo", attribute="home")
OLD = known("I live in Leeds")


def test_the_one_that_was_said_first_is_the_older() -> None:
    vectors = {NEW.text: VECTOR, OLD.content: VECTOR}
    ((place, pair),) = pairs_to_ask([NEW], [OLD], vectors=vectors).items()
    assert (place, pair.older, pair.newer) == ((0, OLD.id), OLD.content, NEW.text)
    late = replace(NEW, said_at=NOW - 99)
    ((_, pair),) = pairs_to_ask([late], [OLD], vectors=vectors).items()
    assert (pair.older, pair.newer) == (NEW.text, OLD.content)


@pytest.mark.parametrize(
    "other",
    [
        known("My sister lives in Leeds", subject=Relation.SIBLING.value),
        known("I lived in Leeds", status=MemoryStatus.SUPERSEDED),
        known("I live in Leeds for the project", project_id="p"),
        known("i live in oslo!"),  # the same statement: nothing to ask
    ],
)
def test_what_cannot_be_changed_by_it_is_not_asked_about(other: Memory) -> None:
    assert pairs_to_ask([NEW], [other], vectors={NEW.text: VECTOR, other.content: VECTOR}) == {}


def test_what_is_far_in_meaning_is_not_asked_about() -> None:
    hobby, other = claim("I row", attribute="hobby"), known("I sing", attribute="hobby")
    assert pairs_to_ask([hobby], [other], vectors={hobby.text: VECTOR, other.content: FAR}) == {}


def test_two_values_of_an_attribute_that_has_one_are_asked_about_before_all_else() -> None:
    near = [known(f"Oslo is town {n}", attribute="opinion") for n in range(PAIRS_OF_ONE_MAX)]
    vectors = {NEW.text: VECTOR, OLD.content: FAR, **{row.content: VECTOR for row in near}}
    asked = [memory_id for _, memory_id in pairs_to_ask([NEW], [*near, OLD], vectors=vectors)]
    assert (asked[0], len(asked)) == (OLD.id, PAIRS_OF_ONE_MAX)


def test_the_nearest_few_are_asked_about() -> None:
    many = [known(f"I live in town {n}") for n in range(10)]
    near = {row.content: np.array([1.0, n / 10], dtype=np.float32) for n, row in enumerate(many)}
    near = {text: vector / np.linalg.norm(vector) for text, vector in near.items()}
    asked = pairs_to_ask([NEW], many, vectors={NEW.text: VECTOR, **near})
    assert [memory_id for _, memory_id in asked] == [row.id for row in many[:PAIRS_OF_ONE_MAX]]
