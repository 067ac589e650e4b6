"""Receipts: readable soon after by the user they are about, and by nobody else; bounded. On every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from note_books import BOOKS, Books, Bounds, Opener
from turn_logs import START, ManualClock

from memory.errors import BadInput
from memory.model import CandidateVerdict, CarriedNote, RecallStatus, Receipt, ReceiptCandidate
from memory.ports import ReceiptPage, Receipts

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


@pytest.fixture(params=sorted(BOOKS))
def open_books(request: pytest.FixtureRequest) -> Opener:
    return BOOKS[request.param]


@pytest.fixture
async def books(open_books: Opener, tmp_path: Path) -> AsyncIterator[Books]:
    async with open_books(tmp_path, ManualClock(), Bounds()) as opened:
        yield opened


async def got(receipts: Receipts, user_id: str, receipt_id: str) -> Receipt | None:
    """What can be read within a second."""
    for _ in range(100):
        found = await receipts.get(user_id, receipt_id)
        if found is not None:
            return found
        await asyncio.sleep(0.01)
    return None


async def kept(receipts: Receipts, user_id: str, ids: list[str]) -> list[str]:
    return [receipt_id for receipt_id in ids if await receipts.get(user_id, receipt_id) is not None]


async def test_a_receipt_can_be_read_as_it_was_within_a_second(books: Books) -> None:
    books.receipts.keep(FULL)
    assert await got(books.receipts, "ann", "r1") == FULL


async def test_another_process_reads_it_too(open_books: Opener, tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_books(tmp_path, clock, Bounds()) as one, open_books(tmp_path, clock, Bounds()) as two:
        one.receipts.keep(FULL)
        assert await got(two.receipts, "ann", "r1") == FULL


async def test_somebody_else_s_receipt_is_as_absent_as_one_that_never_was(books: Books) -> None:
    books.receipts.keep(FULL)
    assert await got(books.receipts, "ann", "r1") is not None
    assert await books.receipts.get("bob", "r1") is None
    assert await books.receipts.get("ann", "never") is None


async def test_the_first_receipt_of_an_id_stands(books: Books) -> None:
    books.receipts.keep(receipt("r1", query="first"))
    books.receipts.keep(receipt("r1", query="second"))
    books.receipts.keep(receipt("r2"))
    await got(books.receipts, "ann", "r2")
    found = await books.receipts.get("ann", "r1")
    assert found is not None
    assert found.query == "first"


async def test_an_expired_receipt_cannot_be_read(open_books: Opener, tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_books(tmp_path, clock, Bounds(receipt_seconds=100)) as books:
        books.receipts.keep(receipt("old"))
        assert await got(books.receipts, "ann", "old") is not None
        clock.now += 99
        assert await books.receipts.get("ann", "old") is not None
        clock.now += 1
        assert await books.receipts.get("ann", "old") is None


async def test_a_user_keeps_his_latest_receipts_only(open_books: Opener, tmp_path: Path) -> None:
    ids = [f"r{n:02}" for n in range(30)]
    async with open_books(tmp_path, ManualClock(), Bounds(user_receipts=10)) as books:
        books.receipts.keep(receipt("theirs", "bob"))
        for receipt_id in ids:
            books.receipts.keep(receipt(receipt_id))
        await got(books.receipts, "ann", ids[-1])
        assert await kept(books.receipts, "ann", ids) == ids[20:]
        assert await kept(books.receipts, "bob", ["theirs"]) == ["theirs"]


async def test_an_erased_project_stays_erased_for_a_user_with_as_many_receipts_as_are_kept(
    open_books: Opener, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with open_books(tmp_path, clock, Bounds(user_receipts=3)) as books:
        await books.receipts.erase("ann", project_id="red")
        for number in range(5):
            books.receipts.keep(receipt(f"r{number}", at=clock.now))
        books.receipts.keep(receipt("on its way", project_id="red", at=clock.now - 0.5))
        books.receipts.keep(receipt("last", at=clock.now))
        assert await got(books.receipts, "ann", "last") is not None
        assert ids(await books.receipts.page("ann", limit=9)) == ["last", "r4", "r3"]


async def test_all_receipts_together_have_a_bound_in_bytes(open_books: Opener, tmp_path: Path) -> None:
    ids = [f"r{n:02}" for n in range(30)]
    async with open_books(tmp_path, ManualClock(), Bounds(total_bytes=20_000)) as books:
        for n, receipt_id in enumerate(ids):
            books.receipts.keep(receipt(receipt_id, f"user{n}", query="x" * 1_800))
        await got(books.receipts, "user29", ids[-1])
        left = [n for n, receipt_id in enumerate(ids) if await books.receipts.get(f"user{n}", receipt_id) is not None]
        assert left == list(range(30 - len(left), 30))
        assert 8 <= len(left) <= 11


async def test_erasing_a_user_leaves_nothing_of_his_and_all_of_the_others(books: Books) -> None:
    books.receipts.keep(FULL)
    books.receipts.keep(receipt("theirs", "bob"))
    await got(books.receipts, "bob", "theirs")
    await books.receipts.erase("ann")
    assert await books.receipts.get("ann", "r1") is None
    assert await books.receipts.get("bob", "theirs") is not None


async def test_erasing_a_project_leaves_the_receipts_of_all_other_chats(open_books: Opener, tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_books(tmp_path, clock, Bounds()) as books:
        kept_ids = ["none", "blue"]
        books.receipts.keep(receipt("red 1", project_id="red"))
        books.receipts.keep(receipt("none"))
        books.receipts.keep(receipt("blue", project_id="blue"))
        books.receipts.keep(receipt("theirs", "bob", project_id="red"))
        books.receipts.keep(receipt("red 2", project_id="red"))
        assert await got(books.receipts, "ann", "red 2") == receipt("red 2", project_id="red")
        for _ in range(2):
            clock.now += 1.0
            await books.receipts.erase("ann", project_id="red")
            books.receipts.keep(receipt("on its way", project_id="red", at=clock.now - 0.5))
            books.receipts.keep(receipt(f"late {clock.now}", project_id="blue", at=clock.now - 0.5))
            assert await got(books.receipts, "ann", f"late {clock.now}") is not None
            kept_ids.append(f"late {clock.now}")
            assert ids(await books.receipts.page("ann", limit=9)) == kept_ids[::-1]
        assert sorted(ids(await books.receipts.page_of_all(limit=9))) == sorted([*kept_ids, "theirs"])
        books.receipts.keep(receipt("red 3", project_id="red", at=clock.now + 1))
        assert await got(books.receipts, "ann", "red 3") is not None
        await books.receipts.erase("ann", project_id="nobody's")
        await books.receipts.erase("ann")
        assert ids(await books.receipts.page("ann", limit=9)) == []
        assert ids(await books.receipts.page("bob", limit=9)) == ["theirs"]


async def test_keeping_never_raises_even_what_cannot_be_kept_or_when_all_is_closed(
    open_books: Opener, tmp_path: Path
) -> None:
    async with open_books(tmp_path, ManualClock(), Bounds()) as books:
        books.receipts.keep(receipt("bad", query="\ud800"))
        books.receipts.keep(receipt("good"))
        assert await got(books.receipts, "ann", "good") is not None
        assert await books.receipts.get("ann", "bad") is None
    books.receipts.keep(receipt("late"))


async def test_what_learning_did_is_put_into_the_receipt_and_the_rest_stays(books: Books) -> None:
    books.receipts.keep(FULL)
    assert await got(books.receipts, "ann", "r1") == FULL
    await books.receipts.amend("ann", "r1", {"forgot": ["m1"], "count": 1})
    await books.receipts.amend("ann", "r1", {"forgot": ["m1", "m2"], "count": 2})
    assert await books.receipts.get("ann", "r1") == replace(FULL, outcome={"forgot": ["m1", "m2"], "count": 2})


async def test_nobody_amends_a_receipt_that_is_not_theirs_or_not_there(books: Books) -> None:
    books.receipts.keep(FULL)
    assert await got(books.receipts, "ann", "r1") == FULL
    await books.receipts.amend("bob", "r1", {"count": 1})
    await books.receipts.amend("ann", "never", {"count": 1})
    assert await books.receipts.get("ann", "r1") == FULL
    assert await books.receipts.get("bob", "r1") is None


async def test_what_was_on_its_way_when_all_was_erased_is_not_kept_after_it(open_books: Opener, tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_books(tmp_path, clock, Bounds()) as books:
        books.receipts.keep(receipt("before"))
        clock.now += 1.0
        await books.receipts.erase("ann")
        books.receipts.keep(receipt("on its way"))
        books.receipts.keep(receipt("theirs", "bob"))
        books.receipts.keep(receipt("after", at=START + 2.0))
        assert await got(books.receipts, "ann", "after") is not None
        assert await kept(books.receipts, "ann", ["before", "on its way", ""]) == []
        assert await got(books.receipts, "bob", "theirs") is not None
        await books.receipts.erase("ann")
        assert await books.receipts.get("ann", "after") is None


def ids(page: ReceiptPage) -> list[str]:
    return [one.id for one in page.receipts]


async def test_pages_show_the_latest_first_each_once_and_only_the_user_s_own(books: Books) -> None:
    for n in range(7):
        books.receipts.keep(receipt(f"r{n}"))
        books.receipts.keep(receipt(f"b{n}", "bob"))
    await got(books.receipts, "bob", "b6")
    seen, cursor = [], ""
    for expected in (["r6", "r5", "r4"], ["r3", "r2", "r1"], ["r0"]):
        page = await books.receipts.page("ann", limit=3, cursor=cursor)
        assert ids(page) == expected
        seen, cursor = seen + ids(page), page.next_cursor
    assert cursor == ""
    assert ids(await books.receipts.page("carl", limit=3)) == []
    assert (await books.receipts.page("ann", limit=7)).next_cursor == ""


async def test_a_page_of_a_memory_shows_the_requests_whose_notes_held_it(books: Books) -> None:
    def with_note(receipt_id: str, *memory_ids: str) -> Receipt:
        return receipt(receipt_id, notes=(CarriedNote(None, memory_ids, 9, is_new=True),))

    books.receipts.keep(with_note("r1", "m1", "m2"))
    books.receipts.keep(receipt("seen", candidates=(ReceiptCandidate("m1", 0.1, {}, CandidateVerdict.IRRELEVANT),)))
    books.receipts.keep(with_note("r2", 'm"2'))
    books.receipts.keep(with_note("r3", "m12", "m1"))
    await got(books.receipts, "ann", "r3")
    assert ids(await books.receipts.page("ann", memory_id="m1", limit=9)) == ["r3", "r1"]
    assert ids(await books.receipts.page("ann", memory_id='m"2', limit=9)) == ["r2"]
    assert ids(await books.receipts.page("ann", memory_id="m", limit=9)) == []
    first = await books.receipts.page("ann", memory_id="m1", limit=1)
    assert ids(first) == ["r3"]
    assert ids(await books.receipts.page("ann", memory_id="m1", limit=1, cursor=first.next_cursor)) == ["r1"]


async def test_pages_of_all_users_go_by_arrival(books: Books) -> None:
    for receipt_id, user_id in (("r1", "ann"), ("r2", "bob"), ("r3", "ann")):
        books.receipts.keep(receipt(receipt_id, user_id))
    await got(books.receipts, "ann", "r3")
    first = await books.receipts.page_of_all(limit=2)
    assert ids(first) == ["r3", "r2"]
    second = await books.receipts.page_of_all(limit=2, cursor=first.next_cursor)
    assert (ids(second), second.next_cursor) == (["r1"], "")


async def test_pages_hold_nothing_that_is_expired_or_erased(open_books: Opener, tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_books(tmp_path, clock, Bounds(receipt_seconds=100)) as books:
        books.receipts.keep(receipt("old"))
        books.receipts.keep(receipt("theirs", "bob", at=START + 50))
        books.receipts.keep(receipt("new", at=START + 50))
        await got(books.receipts, "ann", "new")
        clock.now += 100
        assert ids(await books.receipts.page("ann", limit=9)) == ["new"]
        assert ids(await books.receipts.page_of_all(limit=9)) == ["new", "theirs"]
        await books.receipts.erase("ann")
        assert ids(await books.receipts.page("ann", limit=9)) == []
        assert ids(await books.receipts.page_of_all(limit=9)) == ["theirs"]


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "²", " 1", str(1 << 70), "1" * 5_000])
async def test_a_cursor_that_is_none_of_ours_is_refused(books: Books, cursor: str) -> None:
    with pytest.raises(BadInput, match="next_cursor"):
        await books.receipts.page("ann", limit=3, cursor=cursor)
    with pytest.raises(BadInput, match="next_cursor"):
        await books.receipts.page_of_all(limit=3, cursor=cursor)
