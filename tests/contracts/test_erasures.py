"""Records of erasures: durable, seen by every process, and found only with the id of whom they concern."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TypeAlias

import pytest
from turn_logs import Deployment

from memory.adapters.redis import erasures as redis_erasures
from memory.adapters.sqlite import erasures as sqlite_erasures
from memory.ports.erasures import ErasureRecord, ErasureRequest, Erasures, NoErasures, PlaceReport, ScanReport

ANN, NOW = "ann.lee@example.com", 1_750_000_000.0
Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[Erasures]]


@pytest.fixture
def process(deployment: Deployment) -> Opened:
    """Opens one more process on the same erasures."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Erasures]:
        async with deployment.start() as started:
            yield started.erasures

    return opened


def asked(erasure_id: str, *, at: float = NOW) -> ErasureRequest:
    return ErasureRequest(erasure_id, at, at + 0.5, {"memories": 3, "turns_withdrawn": 0})


async def test_an_erasure_is_known_to_its_user_alone(process: Opened) -> None:
    async with process() as erasures:
        await erasures.begun(ANN, asked("e1"))
        assert await erasures.get(ANN, "e1") == ErasureRecord(asked("e1"))
        for user, erasure_id in (("bob", "e1"), (ANN.upper(), "e1"), (ANN, "e2"), (ANN, "")):
            assert await erasures.get(user, erasure_id) is None


async def test_it_is_seen_by_all_processes_and_survives_them(process: Opened) -> None:
    looks = (
        PlaceReport("files", "every file", 4, 4_096, ("milvus/a", "turns.sqlite-wal")),
        PlaceReport("redis", "every key", 7, 70, (), ("files of 2 replicas", "keys of the type stream")),
    )
    report = ScanReport.of(looks, at=NOW + 9)
    assert (report.files, report.bytes, report.found_in) == (4, 4_096, ("milvus/a", "turns.sqlite-wal"))
    async with process() as one, process() as two:
        await one.begun(ANN, asked("e1"))
        assert await two.get(ANN, "e1") == ErasureRecord(asked("e1"))
        assert await two.pending() == [asked("e1")]
        await two.rewritten([asked("e1")], at=NOW + 5)
        assert await one.pending() == []
        await one.scanned("e1", report)
    async with process() as third:
        assert await third.get(ANN, "e1") == ErasureRecord(asked("e1"), NOW + 5, report)


async def test_those_whose_files_wait_come_in_the_order_in_which_they_began(process: Opened) -> None:
    async with process() as erasures:
        assert await erasures.pending() == []
        for erasure_id, at in (("e2", NOW + 9), ("e1", NOW), ("e3", NOW + 1)):
            await erasures.begun(ANN if erasure_id == "e2" else "bob", asked(erasure_id, at=at))
        assert [one.id for one in await erasures.pending()] == ["e2", "e1", "e3"]
        await erasures.rewritten([asked("e1"), asked("unknown")], at=NOW + 20)
        assert [one.id for one in await erasures.pending()] == ["e2", "e3"]
        await erasures.rewritten([], at=NOW + 21)
        assert [one.id for one in await erasures.pending()] == ["e2", "e3"]


async def test_those_of_all_users_are_listed_latest_first(process: Opened) -> None:
    async with process() as erasures:
        assert await erasures.latest(limit=9) == []
        for number, user in enumerate((ANN, "bob", ANN)):
            await erasures.begun(user, asked(f"e{number}"))
        await erasures.rewritten([asked("e1")], at=NOW + 5)
        await erasures.scanned("e1", ScanReport(NOW + 9, 4, 10))
        assert [one.request.id for one in await erasures.latest(limit=9)] == ["e2", "e1", "e0"]
        assert (await erasures.latest(limit=2))[1] == await erasures.get("bob", "e1")
        assert len(await erasures.latest(limit=2)) == 2


async def test_of_very_many_that_wait_the_oldest_come_first(process: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    for adapter in (sqlite_erasures, redis_erasures):
        monkeypatch.setattr(adapter, "PENDING_MAX", 2)
    async with process() as erasures:
        for number in range(3):
            await erasures.begun(ANN, asked(f"e{number}"))
        first = await erasures.pending()
        assert [one.id for one in first] == ["e0", "e1"]
        await erasures.rewritten(first, at=NOW)
        assert [one.id for one in await erasures.pending()] == ["e2"]


async def test_a_rewriting_that_is_repeated_keeps_the_time_of_the_first(process: Opened) -> None:
    async with process() as erasures:
        await erasures.begun(ANN, asked("e1"))
        for at in (NOW + 5, NOW + 50):
            await erasures.rewritten([asked("e1")], at=at)
        assert await erasures.get(ANN, "e1") == ErasureRecord(asked("e1"), NOW + 5)


async def test_a_later_look_replaces_an_earlier_one(process: Opened) -> None:
    async with process() as erasures:
        await erasures.begun(ANN, asked("e1"))
        await erasures.begun(ANN, asked("e2"))
        for report in (ScanReport(NOW, 4, 10, ("a",)), ScanReport(NOW + 1, 5, 12)):
            await erasures.scanned("e1", report)
            found = await erasures.get(ANN, "e1")
            assert found is not None
            assert found.scan == report
        assert await erasures.get(ANN, "e2") == ErasureRecord(asked("e2"))


async def test_a_user_who_is_erased_again_has_both(process: Opened) -> None:
    async with process() as erasures:
        for number in (1, 2):
            await erasures.begun(ANN, asked(f"e{number}", at=NOW + number))
        for number in (1, 2):
            assert await erasures.get(ANN, f"e{number}") == ErasureRecord(asked(f"e{number}", at=NOW + number))


async def test_many_wait_at_once(process: Opened) -> None:
    async with process() as erasures:
        for number in range(230):
            await erasures.begun(f"user {number}", asked(f"e{number}"))
        assert [one.id for one in await erasures.pending()] == [f"e{number}" for number in range(230)]


async def test_one_that_is_begun_again_waits_again_in_its_place_with_its_new_numbers(process: Opened) -> None:
    async with process() as erasures:
        for erasure_id in ("e1", "e2"):
            await erasures.begun(ANN, asked(erasure_id))
        await erasures.rewritten([asked("e1")], at=NOW + 9)
        again = replace(asked("e1"), deleted_at=NOW + 20, deleted={"memories": 7})
        await erasures.begun(ANN, again)
        assert again in await erasures.pending()
        assert await erasures.get(ANN, "e1") == ErasureRecord(again)
        assert [one.request.id for one in await erasures.latest(limit=9)] == ["e2", "e1"]


async def test_one_that_is_begun_again_while_files_are_rewritten_waits_on(process: Opened) -> None:
    """Its rows were deleted after that had begun."""
    async with process() as erasures:
        await erasures.begun(ANN, asked("e1"))
        found = await erasures.pending()
        again = replace(asked("e1"), deleted_at=NOW + 20)
        await erasures.begun(ANN, again)
        await erasures.rewritten(found, at=NOW + 25)
        assert await erasures.pending() == [again]
        assert await erasures.get(ANN, "e1") == ErasureRecord(again)


async def test_an_erased_part_of_a_user_is_known_by_its_name_alone(process: Opened) -> None:
    async with process() as erasures:
        await erasures.begun(ANN, asked("e1"), part="project red")
        await erasures.begun(ANN, asked("e2"))
        assert await erasures.get(ANN, "e1", part="project red") == ErasureRecord(asked("e1"))
        assert await erasures.get(ANN, "e2") == ErasureRecord(asked("e2"))
        wrong = ((ANN, "e1", ""), (ANN, "e1", "project blue"), ("bob", "e1", "project red"), (ANN, "e2", "project red"))
        for user, erasure_id, part in wrong:
            assert await erasures.get(user, erasure_id, part=part) is None
        assert [one.id for one in await erasures.pending()] == ["e1", "e2"]


async def test_the_last_look_for_a_part_of_a_user_is_found_whichever_erasure_it_was_for(process: Opened) -> None:
    async with process() as erasures:
        for erasure_id, user, part in (("e1", ANN, ""), ("e2", ANN, ""), ("e3", ANN, "red"), ("e4", "bob", "")):
            await erasures.begun(user, asked(erasure_id), part=part)
        assert await erasures.last_scan(ANN) is None
        reports = {f"e{number}": ScanReport(NOW - number, number, 0, looks=number) for number in range(1, 5)}
        for erasure_id, report in reports.items():
            await erasures.scanned(erasure_id, report)
        assert await erasures.last_scan(ANN) == await erasures.last_scan(ANN, part="") == reports["e1"]
        assert await erasures.last_scan(ANN, part="red") == reports["e3"]
        assert await erasures.last_scan("bob") == reports["e4"]
        await erasures.scanned("e3", later := ScanReport(NOW + 1, 3, 0, looks=5))
        assert await erasures.last_scan(ANN) == later
        assert await erasures.last_scan(ANN, part="") == reports["e1"]
        assert await erasures.last_scan("bob", part="red") is None


@pytest.mark.parametrize("part", ["", "red"])
async def test_the_latest_of_a_user_are_kept_and_the_last_look_for_whatever_part_of_them(
    process: Opened, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    for adapter in (sqlite_erasures, redis_erasures):
        monkeypatch.setattr(adapter, "ERASURES_PER_USER_MAX", 3)
    async with process() as erasures:
        await erasures.begun("bob", asked("of bob"))
        for number in range(3):
            await erasures.begun(ANN, asked(f"looked at {number}"), part=part)
            await erasures.scanned(f"looked at {number}", ScanReport(NOW + (9, 99, 9)[number], 1, 1, looks=7))
        for number in range(8):
            await erasures.begun(ANN, asked(f"e{number}"), part=f"project {number}")
        names = ["e7", "e6", "e5", "looked at 1", "of bob"]
        assert [one.request.id for one in await erasures.latest(limit=99)] == names
        assert [one.id for one in await erasures.pending()] == names[::-1]
        assert await erasures.get(ANN, "e4", part="project 4") is None
        last = await erasures.last_scan(ANN)
        assert last is not None
        assert (last.scanned_at, last.looks) == (NOW + 99, 7)


async def test_those_that_were_rewritten_long_ago_expire(process: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_erasures, "PAGE", 4)
    async with process() as erasures:
        for number in range(30):
            await erasures.begun(f"user {number % 7}", asked(f"e{number}"), part="red" if number % 2 else "")
            if number % 3:
                await erasures.rewritten([asked(f"e{number}")], at=NOW + number)
        await erasures.expire(before=NOW + 24)
        left = [one.request.id for one in await erasures.latest(limit=99)]
        assert left == [f"e{n}" for n in reversed(range(30)) if n >= 24 or not n % 3]
        assert await erasures.get("user 0", "e7", part="red") is None
        assert len(await erasures.pending()) == 10
        await erasures.begun("user 0", asked("e7"), part="red")
        assert await erasures.get("user 0", "e7", part="red") == ErasureRecord(asked("e7"))


async def test_no_file_holds_the_user_s_id(process: Opened, deployment: Deployment) -> None:
    user, erasure_id = f"{uuid.uuid4().hex}@example.com", uuid.uuid4().hex  # files may hold those of earlier tests
    async with process() as erasures:
        await erasures.begun(user, asked(erasure_id))
        await erasures.begun(user, asked(f"{erasure_id}-2"), part=f"project of {user}")
        await erasures.rewritten([asked(erasure_id)], at=NOW)
        files = [path for path in deployment.folder.rglob("*") if path.is_file()]
        assert any(erasure_id.encode() in path.read_bytes() for path in files)
        assert not [path.name for path in files if user.encode() in path.read_bytes()]


async def test_where_none_are_recorded_none_waits() -> None:
    erasures = NoErasures()
    await erasures.begun(ANN, asked("e1"))
    await erasures.rewritten([asked("e1")], at=NOW)
    await erasures.scanned("e1", ScanReport(NOW, 1, 1))
    await erasures.expire(before=NOW)
    assert await erasures.last_scan(ANN) is None
    assert (await erasures.pending(), await erasures.latest(limit=9), await erasures.get(ANN, "e1")) == ((), (), None)
