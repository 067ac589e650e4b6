"""A cancellation ends the plan that it names, and none where it may mean several."""

from __future__ import annotations

import pytest

from memory.learn.changes.supersession import compare, may_change
from memory.learn.consolidation import consolidate
from memory.learn.facts import Fact
from memory.model import ChangeKind, Evidence, Memory, Scope

NOW = 1_750_000_000.0
TRIPS = ("My trip to Bergen is in June", "My trip to Lugano is in July", "My trip to Malta is in August")


def fact(content: str, said_at: float) -> Fact:
    return Fact(content, Evidence(content, f"turn of {content}"), Scope("ann", session_id="s"), said_at)


def stored(contents: tuple[str, ...]) -> list[Memory]:
    facts = [fact(content, NOW - 1_000) for content in contents]
    return [c.memory for c in consolidate(facts, [], now=NOW - 1_000, ids=lambda ordinal: f"old {ordinal}")]


def ended(known: tuple[str, ...], said: str) -> set[str]:
    changes = consolidate([fact(said, NOW)], stored(known), now=NOW, ids=lambda ordinal: f"new {ordinal}")
    return {change.memory.content for change in changes if change.kind is ChangeKind.SUPERSEDE}


@pytest.mark.parametrize(
    ("known", "said", "fallen"),
    [
        (TRIPS, "My trip to Lugano got cancelled", {TRIPS[1]}),
        (TRIPS, "The Lugano trip is called off because of a strike", {TRIPS[1]}),
        (TRIPS, "My August trip was cancelled", {TRIPS[2]}),
        (TRIPS, "My trip got cancelled", set()),
        (TRIPS[:1], "My trip got cancelled", {TRIPS[0]}),
        (TRIPS[:1], "My trip to Crete got cancelled", set()),
        (("I have a physio appointment on Friday", "I have a vet appointment on Monday"), "My vet appointment is off",
         {"I have a vet appointment on Monday"}),
        (("我七月去青岛旅游", "我九月去婺源旅游"), "婺源的旅行取消了", {"我九月去婺源旅游"}),
    ],
)  # fmt: skip
def test_only_the_plan_that_is_named_ends(known: tuple[str, ...], said: str, fallen: set[str]) -> None:
    assert ended(known, said) == fallen


def test_what_else_a_cancellation_says_counts_by_itself() -> None:
    known = (*TRIPS, "I live in Leeds")
    assert ended(known, "My trip is cancelled, I moved to York") == {"I live in Leeds"}


@pytest.mark.parametrize(
    ("said", "known", "rest"),
    [
        (
            "scrap Lisbon, mum's broken her hip so we've called the whole trip off",
            "packing list for Lisbon please, we fly on 11 October",
            "",
        ),
        ("Ditch Malaga, it's too hot", "We booked a trip to Malaga for August", ""),
        ("ok let's forget about Bergen, too dear", "I'm flying to Bergen in May, I work as a cook", "I work as a cook"),
        ("Scrap Bergen.", "We fly to Bergen on 3 May, we fly to Vienna on 9 June", "we fly to Vienna on 9 June"),
    ],
)
def test_a_journey_that_is_dropped_by_its_name_falls(said: str, known: str, rest: str) -> None:
    verdict = compare(said, known)
    assert may_change(said)
    assert verdict is not None
    assert verdict.remainder == rest


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("scrap Lisbon, mum's broken her hip", "My sister lives in Lisbon"),
        ("scrap Lisbon, mum's broken her hip", "We fly to Porto on 11 October"),
        ("scrap Lisbon, mum's broken her hip", "I visited Lisbon with Jo, a lovely trip"),
        ("scrap Lisbon", "My brother is flying to Lisbon in May"),
        ("We scrap metal in Lisbon", "I'm flying to Lisbon in May"),
        ("I can't forget Lisbon, what a trip", "I'm flying to Lisbon in May"),
        ("Forget Python, show me Rust", "I use Python at work"),
    ],
)
def test_another_journey_and_what_else_is_of_the_place_stand(said: str, known: str) -> None:
    assert compare(said, known) is None
