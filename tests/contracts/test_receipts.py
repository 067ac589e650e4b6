"""Receipts: readable soon after by the user they are about, and by nobody else; bounded; compared by their arms."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from turn_logs import START, Deployment, Process, a_turn

from memory.adapters.sql.receipts import ReceiptLimits
from memory.errors import BadInput
from memory.model import CandidateVerdict, CarriedNote, RecallStatus, Receipt, ReceiptCandidate, TurnStatus
from memory.model.arms import Arm, ComparedTurn
from memory.ports import Page, Receipts

FULL = Receipt(
    id="r1",
    user_id="ann",
    at=START,
    status=RecallStatus.USED,
    reason="found",
    signals={"search": True, "label": "personal", "scores": {"personal": 0.75, "fact": 0.25}},
    query="What's my “budget” 你好?",
    candidates=(
        ReceiptCandidate("m1", 1.5, {"dense": 0.9, "lexical": 0.6}, CandidateVerdict.INJECTED),
        ReceiptCandidate("m2", 0.1, {}, CandidateVerdict.IRRELEVANT),
    ),
    left_out=148,
    notes=(CarriedNote(1, ("m0",), 60, is_new=False), CarriedNote(None, ("m1",), 70, is_new=True)),
    timings_ms={"embed": 3.25, "rank": 0.5},
)


def receipt(receipt_id: str, user_id: str = "ann", *, at: float = START, **fields: Any) -> Receipt:
    return Receipt(receipt_id, user_id, at, RecallStatus.EMPTY, "nothing_relevant", **fields)


async def got(receipts: Receipts, user_id: str, receipt_id: str) -> Receipt:
    """Once it can be read."""
    async with asyncio.timeout(30):
        while (found := await receipts.get(user_id, receipt_id)) is None:
            await asyncio.sleep(0.01)
    return found


def ids(page: Page[Receipt]) -> list[str]:
    return [one.id for one in page.items]


async def test_a_receipt_can_be_read_as_it_was_in_every_process_and_by_its_user_alone(
    process: Process, other: Process
) -> None:
    process.receipts.keep(FULL)
    process.receipts.keep(receipt("r1", query="second"))  # the first of an id stands
    process.receipts.keep(receipt("r2"))
    await got(process.receipts, "ann", "r2")
    assert await got(process.receipts, "ann", "r1") == await got(other.receipts, "ann", "r1") == FULL
    assert await process.receipts.get("bob", "r1") is await process.receipts.get("ann", "never") is None


async def test_a_user_keeps_his_latest_receipts_only_and_an_erased_project_stays_erased(deployment: Deployment) -> None:
    now = deployment.clock.now
    deployment.bounds.receipts = ReceiptLimits(user_receipts_max=3)
    async with deployment.start() as process:
        process.receipts.keep(receipt("theirs", "bob"))
        await process.receipts.erase("ann", project_id="red")
        for number in range(30):
            process.receipts.keep(receipt(f"r{number}", at=now))
        process.receipts.keep(receipt("on its way", project_id="red", at=now - 0.5))
        process.receipts.keep(receipt("last", at=now))
        assert await got(process.receipts, "ann", "last") is not None
        assert ids(await process.receipts.page("ann", limit=9)) == ["last", "r29", "r28"]
        assert ids(await process.receipts.page("bob", limit=9)) == ["theirs"]


async def test_all_receipts_together_have_a_bound_in_bytes(deployment: Deployment) -> None:
    deployment.bounds.receipts = ReceiptLimits(total_bytes_max=20_000)
    async with deployment.start() as process:
        for n in range(30):
            process.receipts.keep(receipt(f"r{n}", f"user{n}", query="x" * 1_800))
        await got(process.receipts, "user29", "r29")
        left = [n for n in range(30) if await process.receipts.get(f"user{n}", f"r{n}") is not None]
        assert left == list(range(30 - len(left), 30))
        assert 8 <= len(left) <= 11


async def test_erasing_a_project_leaves_the_receipts_of_others(deployment: Deployment, process: Process) -> None:
    clock = deployment.clock
    kept_ids = ["none", "blue"]
    process.receipts.keep(receipt("red 1", project_id="red"))
    process.receipts.keep(receipt("none"))
    process.receipts.keep(receipt("blue", project_id="blue"))
    process.receipts.keep(receipt("theirs", "bob", project_id="red"))
    process.receipts.keep(receipt("red 2", project_id="red"))
    assert await got(process.receipts, "ann", "red 2") == receipt("red 2", project_id="red")
    for _ in range(2):
        clock.now += 1.0
        await process.receipts.erase("ann", project_id="red")
        process.receipts.keep(receipt("on its way", project_id="red", at=clock.now - 0.5))
        process.receipts.keep(receipt(f"late {clock.now}", project_id="blue", at=clock.now - 0.5))
        assert await got(process.receipts, "ann", f"late {clock.now}") is not None
        kept_ids.append(f"late {clock.now}")
        assert ids(await process.receipts.page("ann", limit=9)) == kept_ids[::-1]
    assert sorted(ids(await process.receipts.page_of_all(limit=9))) == sorted([*kept_ids, "theirs"])
    process.receipts.keep(receipt("red 3", project_id="red", at=clock.now + 1))
    assert await got(process.receipts, "ann", "red 3") is not None
    await process.receipts.erase("ann", project_id="nobody's")
    await process.receipts.erase("ann")
    assert ids(await process.receipts.page("ann", limit=9)) == []
    assert ids(await process.receipts.page("bob", limit=9)) == ["theirs"]


async def test_keeping_never_raises_even_what_cannot_be_kept_or_when_all_is_closed(deployment: Deployment) -> None:
    async with deployment.start() as process:
        process.receipts.keep(receipt("bad", query="\ud800"))
        process.receipts.keep(receipt("good"))
        assert await got(process.receipts, "ann", "good") is not None
        assert await process.receipts.get("ann", "bad") is None
    process.receipts.keep(receipt("late"))


async def test_what_learning_did_is_put_into_the_receipt_and_the_rest_stays(process: Process) -> None:
    receipts = process.receipts
    receipts.keep(FULL)
    assert await got(receipts, "ann", "r1") == FULL
    for outcome in ({"forgot": ["m1"], "count": 1}, {"forgot": ["m1", "m2"], "count": 2}):
        await receipts.amend("ann", "r1", outcome)
    await receipts.amend("bob", "r1", {"count": 1})  # not theirs
    await receipts.amend("ann", "never", {"count": 1})
    assert await receipts.get("ann", "r1") == replace(FULL, outcome={"forgot": ["m1", "m2"], "count": 2})
    assert await receipts.get("bob", "r1") is await receipts.get("ann", "never") is None


async def test_what_was_on_its_way_when_all_was_erased_is_not_kept_after_it(
    deployment: Deployment, process: Process
) -> None:
    process.receipts.keep(receipt("before"))
    deployment.clock.now += 1.0
    await process.receipts.erase("ann")
    process.receipts.keep(receipt("on its way"))
    process.receipts.keep(receipt("theirs", "bob"))
    process.receipts.keep(receipt("after", at=START + 2.0))
    assert await got(process.receipts, "ann", "after") is not None
    assert [await process.receipts.get("ann", one) for one in ("before", "on its way", "")] == [None] * 3
    assert await got(process.receipts, "bob", "theirs") is not None
    await process.receipts.erase("ann")
    assert await process.receipts.get("ann", "after") is None


async def test_pages_show_the_latest_first_each_once_and_only_the_user_s_own(process: Process) -> None:
    for n in range(7):
        process.receipts.keep(receipt(f"r{n}"))
        process.receipts.keep(receipt(f"b{n}", "bob"))
    await got(process.receipts, "bob", "b6")
    cursor = ""
    for expected in (["r6", "r5", "r4"], ["r3", "r2", "r1"], ["r0"]):
        page = await process.receipts.page("ann", limit=3, cursor=cursor)
        assert ids(page) == expected
        cursor = page.next_cursor
    assert cursor == ""
    assert ids(await process.receipts.page("carl", limit=3)) == []
    assert (await process.receipts.page("ann", limit=7)).next_cursor == ""
    first = await process.receipts.page_of_all(limit=9)
    second = await process.receipts.page_of_all(limit=9, cursor=first.next_cursor)
    by_arrival = [f"{letter}{n}" for n in range(7) for letter in "rb"]
    assert (ids(first) + ids(second), second.next_cursor) == (by_arrival[::-1], "")


async def test_a_page_of_a_memory_shows_the_requests_whose_notes_held_it(process: Process) -> None:
    irrelevant = ReceiptCandidate("m1", 0.1, {}, CandidateVerdict.IRRELEVANT)
    process.receipts.keep(receipt("seen", candidates=(irrelevant,)))
    for receipt_id, memory_ids in (("r1", ("m1", "m2")), ("r2", ('m"2',)), ("r3", ("m12", "m1"))):
        process.receipts.keep(receipt(receipt_id, notes=(CarriedNote(None, memory_ids, 9, is_new=True),)))
    await got(process.receipts, "ann", "r3")
    for memory_id, expected in (("m1", ["r3", "r1"]), ('m"2', ["r2"]), ("m", [])):
        assert ids(await process.receipts.page("ann", memory_id=memory_id, limit=9)) == expected
    first = await process.receipts.page("ann", memory_id="m1", limit=1)
    assert ids(first) == ["r3"]
    assert ids(await process.receipts.page("ann", memory_id="m1", limit=1, cursor=first.next_cursor)) == ["r1"]


async def test_a_page_of_what_was_asked_shows_the_chats_that_asked_memory_for_something(process: Process) -> None:
    outcomes = {
        "plain": {},
        "kept": {"kept": 1},
        "counted": {"corrections": 2, "repeated_facts": 1},
        "forgot": {"forgot": ["m1"], "count": 1},
        "nothing": {"forgot": [], "count": 0, "reason": "nothing_matched"},
        "withheld": {"withheld": True, "corrections": 1},
        "refused": {"refused": {"secret": 1}},
    }
    for receipt_id in outcomes:
        process.receipts.keep(receipt(receipt_id, query='is it "outcome":{}?'))
    await got(process.receipts, "ann", "refused")
    for receipt_id, outcome in outcomes.items():
        await process.receipts.amend("ann", receipt_id, outcome)
    asked = ["refused", "withheld", "nothing", "forgot", "kept"]
    first = await process.receipts.page("ann", is_asked=True, limit=3)
    assert (ids(first), first.items[0].outcome) == (asked[:3], {"refused": {"secret": 1}})
    rest = await process.receipts.page("ann", is_asked=True, limit=3, cursor=first.next_cursor)
    assert (ids(rest), rest.next_cursor) == (asked[3:], "")
    assert ids(await process.receipts.page("ann", memory_id="m1", is_asked=True, limit=9)) == []
    assert ids(await process.receipts.page("bob", is_asked=True, limit=9)) == []


async def test_pages_hold_nothing_that_is_expired_or_erased(deployment: Deployment) -> None:
    clock = deployment.clock
    deployment.bounds.receipts = ReceiptLimits(seconds_max=100)
    async with deployment.start() as process:
        process.receipts.keep(receipt("old"))
        process.receipts.keep(receipt("theirs", "bob", at=START + 50))
        process.receipts.keep(receipt("new", at=START + 50))
        await got(process.receipts, "ann", "new")
        clock.now += 99
        assert await process.receipts.get("ann", "old") is not None
        clock.now += 1
        assert await process.receipts.get("ann", "old") is None
        assert ids(await process.receipts.page("ann", limit=9)) == ["new"]
        assert ids(await process.receipts.page_of_all(limit=9)) == ["new", "theirs"]
        await process.receipts.erase("ann")
        assert ids(await process.receipts.page("ann", limit=9)) == []
        assert ids(await process.receipts.page_of_all(limit=9)) == ["theirs"]


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "²", " 1", str(1 << 70), "1" * 5_000])
async def test_a_cursor_that_is_none_of_ours_is_refused(process: Process, cursor: str) -> None:
    with pytest.raises(BadInput, match="next_cursor"):
        await process.receipts.page("ann", limit=3, cursor=cursor)
    with pytest.raises(BadInput, match="next_cursor"):
        await process.receipts.page_of_all(limit=3, cursor=cursor)


# How chats with and without memory compare


async def asked(process: Process, turn_id: str, *, user: str, arm: str = "", at: float = START) -> None:
    """A turn, and its receipt if it has an arm."""
    if arm:
        signals = {"arm": arm, "note_tokens": 40}
        process.receipts.keep(Receipt(f"r-{turn_id}", user, at, RecallStatus.USED, "found", signals))
        await got(process.receipts, user, f"r-{turn_id}")
    turn = replace(a_turn(turn_id, user=user, status=TurnStatus.CLOSED, at=at), answer="in Ulm")
    await process.log.append(replace(turn, receipt_id=f"r-{turn_id}" if arm else ""))


async def found(process: Process, *, since: float = 0.0) -> list[ComparedTurn]:
    return [turn async for turn in process.holdouts.turns(since=since)]


async def test_turns_with_receipts_come_in_the_order_of_opening_whosever_they_are(process: Process) -> None:
    """With what learning saw in them, until their receipts are erased."""
    await asked(process, "t1", user="bob", arm="held_out", at=START + 9)
    await asked(process, "t2", user="ann", arm="noted", at=START)
    await asked(process, "t3", user="ann")
    await asked(process, "t4", user="bob", arm="held_out", at=START + 5)
    await process.receipts.amend("ann", "r-t2", {"corrections": 2, "repeated_facts": 1})
    turns = await found(process)
    assert [turn.at - START for turn in turns] == [9, 0, 5]
    assert [turn.arm for turn in turns] == [Arm("held_out"), Arm("noted"), Arm("held_out")]
    assert [(turn.corrections, turn.repeated_facts) for turn in turns] == [(0, 0), (2, 1), (0, 0)]
    assert turns[0].session == turns[2].session != turns[1].session
    assert {turn.note_tokens for turn in turns} == {40}
    assert all(turn.answer_tokens for turn in turns)
    assert await found(process, since=START + 6) == turns[:1]
    await process.receipts.erase("ann")
    assert await found(process) == [turns[0], turns[2]]
