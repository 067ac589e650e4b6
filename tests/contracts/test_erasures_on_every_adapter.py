"""The record of erasures, which holds no user's id. On every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from turn_logs import QUEUE_DEPLOYMENTS, START, Deployment

from memory.ports.erasures import ErasureRecord, ErasureRequest, Erasures, ScanReport

ADAPTERS = QUEUE_DEPLOYMENTS


@pytest.fixture
async def erasures(deployment: Deployment) -> AsyncIterator[Erasures]:
    async with deployment.start() as process:
        yield process.erasures


def request(number: int) -> ErasureRequest:
    return ErasureRequest(f"e{number}", START, START + number, {"memories": number, "turns_withdrawn": 0})


async def test_an_erasure_is_found_by_its_user_alone_in_every_process(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        await one.erasures.begun("ann", request(1))
        assert await two.erasures.get("ann", "e1") == ErasureRecord(request(1))
        assert await two.erasures.get("bob", "e1") is None
        assert await two.erasures.get("ann", "e2") is None
    async with deployment.start() as later:
        assert await later.erasures.get("ann", "e1") == ErasureRecord(request(1))


async def test_erasures_wait_in_order_until_their_files_are_rewritten(erasures: Erasures) -> None:
    assert list(await erasures.pending()) == []
    for number in (2, 1, 3):
        await erasures.begun("ann" if number > 1 else "bob", request(number))
    assert list(await erasures.pending()) == [request(2), request(1), request(3)]
    await erasures.rewritten(["e2", "e3", "unknown"], at=START + 9)
    assert list(await erasures.pending()) == [request(1)]
    assert await erasures.get("ann", "e2") == ErasureRecord(request(2), START + 9)
    await erasures.rewritten(["e2", "e1"], at=START + 10)
    assert await erasures.get("ann", "e2") == ErasureRecord(request(2), START + 9)
    assert list(await erasures.pending()) == []
    assert await erasures.get("ann", "unknown") is None


async def test_a_later_scan_replaces_the_report_of_an_earlier_one(erasures: Erasures) -> None:
    await erasures.begun("ann", request(1))
    await erasures.rewritten(["e1"], at=START + 9)
    for report in (ScanReport(START + 10, 3, 99, ("turns.sqlite",)), ScanReport(START + 11, 3, 98)):
        await erasures.scanned("e1", report)
        await erasures.scanned("unknown", report)
        assert await erasures.get("ann", "e1") == ErasureRecord(request(1), START + 9, report)
    assert await erasures.get("ann", "unknown") is None


async def test_many_erasures_wait_at_once(erasures: Erasures) -> None:
    for number in range(230):
        await erasures.begun("ann", request(number))
    assert [one.id for one in await erasures.pending()] == [f"e{number}" for number in range(230)]


async def test_one_that_is_begun_again_waits_again_with_its_new_numbers(erasures: Erasures) -> None:
    await erasures.begun("ann", request(1))
    await erasures.rewritten(["e1"], at=START + 9)
    again = replace(request(1), deleted_at=START + 20, deleted={"memories": 7})
    await erasures.begun("ann", again)
    assert list(await erasures.pending()) == [again]
    assert await erasures.get("ann", "e1") == ErasureRecord(again)
