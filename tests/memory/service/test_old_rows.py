"""Rows of older releases: which are read again, and what becomes of their fields."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plain_reader import FactReader

from memory.model import Evidence, Memory, MemoryStatus, Trust
from memory.service.old_rows import is_old, split

NOW = 1_750_000_000.0
BOTH = "I live in Leeds and I keep bees."
OLD = Memory("m", "ann", BOTH, NOW, NOW, NOW, attribute="home", evidence=(Evidence(BOTH, "t1"), Evidence("more", "t2")))


@pytest.mark.parametrize(
    "odd",
    [
        replace(OLD, trust=Trust.BOOTSTRAPPED),
        replace(OLD, trust=Trust.TOOL),
        replace(OLD, status=MemoryStatus.SUPERSEDED),
        replace(OLD, content=f"Where? {BOTH}"),
        replace(OLD, evidence=()),
        replace(OLD, evidence=(Evidence(BOTH, "t1", clause=BOTH),)),
    ],
)
def test_what_nobody_said_what_holds_no_more_and_what_was_read_is_not_old(odd: Memory) -> None:
    assert is_old(OLD)
    assert not is_old(odd)


async def test_the_fact_of_the_rows_own_kind_keeps_its_id_and_the_others_get_theirs_again() -> None:
    once, again = [await split([OLD], FactReader(), now=NOW + 9, most=5) for _ in range(2)]
    assert once == again
    (((before, stays), (none, other)),) = once
    assert (before, none) == (OLD, None)
    assert (stays.id, stays.content, stays.attribute) == ("m", "I live in Leeds", "home")
    assert (other.content, other.evidence) == ("I keep bees", (Evidence(BOTH, "t1", clause="I keep bees"),))
    assert not is_old(stays)
    assert not is_old(other)


async def test_no_more_than_so_many_are_read_at_once() -> None:
    assert len(await split([replace(OLD, id=str(n)) for n in range(9)], FactReader(), now=NOW, most=4)) == 4
