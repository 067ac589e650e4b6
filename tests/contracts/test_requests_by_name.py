"""Requests that others name by keys or responses, found by their own user alone. On every adapter."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from math import inf

import pytest
from turn_logs import START, Deployment, Process

from memory.adapters.sql import requests_by_name as sql_chains
from memory.adapters.sql.requests_by_name import CALL_SECONDS
from memory.model import NOTE_KEYS_MAX, ChainLink, Message, Scope, Turn, TurnStatus
from memory.ports import ResponseChains
from memory.ports.requests import KeyClaim

LINK = ChainLink("s1", "t1", ("k1", "k2"))


async def claim(process: Process, user: str = "ann", *, of: bytes = b"a", now: float = START) -> KeyClaim:
    return await process.keys.claim(user, "k", fingerprint=of, now=now)


async def test_the_first_claim_stands_and_gets_the_answer(process: Process) -> None:
    found = await asyncio.gather(*(claim(process, of=str(n).encode(), now=START + n) for n in range(9)))
    assert len(set(found)) == 1  # of those at the same time
    assert await claim(process, of=b"b", now=START + 20) == found[0]
    await process.keys.answered("ann", "k", ["1", "2"])
    assert await claim(process) == replace(found[0], answer=("1", "2"))


async def test_a_key_is_free_again_after_its_time(process: Process) -> None:
    await claim(process)
    assert (await claim(process, of=b"b", now=START + CALL_SECONDS)).fingerprint == b"a"
    assert (await claim(process, of=b"b", now=START + CALL_SECONDS + 1)).fingerprint == b"b"


async def test_each_user_has_keys_of_their_own_and_erasing_takes_them_all(process: Process) -> None:
    await claim(process)
    await claim(process, "bob", of=b"b")
    await process.keys.erase("ann")
    await process.keys.answered("ann", "k", ["1"])
    assert await claim(process, of=b"c", now=START + 5) == KeyClaim(b"c", START + 5)
    assert await claim(process, "bob", of=b"c") == KeyClaim(b"b", START)


@pytest.fixture
def chains(process: Process) -> ResponseChains:
    return process.log.chains


async def test_an_exchange_has_several_names(deployment: Deployment, chains: ResponseChains, other: Process) -> None:
    await chains.keep("ann", ("resp_1", "conv_1"), LINK, at=START)
    found = other.log.chains.find
    assert await found("ann", "resp_1") == await found("ann", "conv_1") == LINK
    assert await found("ann", "resp_2") is await found("bob", "resp_1") is None
    await chains.keep("bob", ("resp_1",), ChainLink("s2", "t2"), at=START)
    await chains.keep("ann", ("conv_1",), ChainLink("s1", "t2"), at=START + 1)
    assert await found("ann", "conv_1") == ChainLink("s1", "t2")  # the latest of a name counts
    async with deployment.start() as later:
        assert await later.log.chains.find("ann", "resp_1") == LINK
        await later.log.chains.erase("ann")
    assert await chains.find("ann", "resp_1") is await found("ann", "resp_1") is None
    assert await found("bob", "resp_1") == ChainLink("s2", "t2")


@pytest.mark.parametrize("name", ["", " ", "x" * 300, "a\x00b", "\ud800"])
async def test_what_is_no_id_names_nothing(chains: ResponseChains, name: str) -> None:
    await chains.keep("ann", (name, "resp_1"), LINK, at=START)
    assert await chains.find("ann", name) is None
    assert await chains.find("ann", "resp_1") == LINK


async def test_the_oldest_go_first(chains: ResponseChains, other: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_chains, "USER_LINKS_MAX", 3)
    await chains.keep("bob", ("resp_0",), LINK, at=START)
    for number in range(5):
        await chains.keep("ann", (f"resp_{number}",), LINK, at=START)
    found = [await other.log.chains.find("ann", f"resp_{number}") for number in range(5)]
    assert found == [None, None, LINK, LINK, LINK]
    assert await other.log.chains.find("bob", "resp_0") == LINK


async def test_what_is_too_old_goes(chains: ResponseChains, other: Process) -> None:
    await chains.keep("ann", ("resp_1",), LINK, at=START)
    await chains.keep("bob", ("resp_1",), LINK, at=START + sql_chains.LINK_SECONDS_MAX + 1)
    assert await other.log.chains.find("ann", "resp_1") is None


async def test_an_exchange_is_found_while_it_is_being_written(chains: ResponseChains) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(chains.keep("ann", ("resp_1",), LINK, at=START))
        await asyncio.sleep(0)
        assert await chains.find("ann", "resp_1") == LINK


async def test_what_was_said_up_to_an_exchange_is_found_in_its_own_scope(process: Process) -> None:
    chains, scope = process.log.chains, Scope("ann", "p", session_id="s1")
    for number, of in enumerate((scope, scope, scope, replace(scope, project_id="q"), replace(scope, user_id="bob"))):
        message = Message("user", f"said {number}")
        await process.log.append(Turn(f"t{number}", of, START, (message,), TurnStatus.CLOSED, answer=f"a{number}"))
    for name, turn_id in (("resp_1", "t1"), ("resp_2", "")):
        await chains.keep("ann", (name,), ChainLink("s1", turn_id), at=START)

    async def said(name: str, of: Scope = scope, limit: int = 9) -> list[str]:
        return [turn.id for turn in await chains.said_before(of, name, limit=limit)]

    assert await said("resp_1") == ["t0", "t1"]
    assert await said("resp_2") == ["t0", "t1", "t2"]
    for of in (Scope("ann", session_id="s1"), Scope("bob", "p", session_id="s1")):
        assert await said("resp_1", of) == []
    assert await said("resp_9") == []
    (turn,) = await chains.said_before(scope, "resp_1", limit=1)
    assert (turn.id, turn.messages[0].content, turn.answer) == ("t1", "said 1", "a1")
    await process.log.withdraw("ann", opened_before=inf, only=["t1"])
    assert await said("resp_1") == ["t0"]


def test_keys_follow_each_other_once_and_only_the_latest_are_kept() -> None:
    assert LINK.followed_by("k3") == ("k1", "k2", "k3")
    assert LINK.followed_by("k1", "") == ("k1", "k2")
    many = ChainLink("s", "t", tuple(str(n) for n in range(NOTE_KEYS_MAX)))
    assert many.followed_by("new") == (*(str(n) for n in range(1, NOTE_KEYS_MAX)), "new")
