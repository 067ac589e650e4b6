"""Exchanges that later requests go on from: found by their names, by their own user alone. On every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from math import inf

import pytest
from turn_logs import START, Deployment

from memory.adapters import retention
from memory.adapters.redis import chains as redis_chains
from memory.adapters.sqlite import chains as sqlite_chains
from memory.model import NOTE_KEYS_MAX, ChainLink, Message, Scope, Turn, TurnStatus
from memory.ports import ResponseChains

LINK = ChainLink("s1", "t1", ("k1", "k2"))


@pytest.fixture
async def chains(deployment: Deployment) -> AsyncIterator[ResponseChains]:
    async with deployment.start() as process:
        yield process.log.chains


async def test_an_exchange_is_found_by_each_of_its_names(chains: ResponseChains) -> None:
    await chains.keep("ann", ("resp_1", "conv_1"), LINK, at=START)
    assert await chains.find("ann", "resp_1") == LINK
    assert await chains.find("ann", "conv_1") == LINK
    assert await chains.find("ann", "resp_2") is None


async def test_another_user_s_exchange_is_not_known(chains: ResponseChains) -> None:
    await chains.keep("ann", ("resp_1",), LINK, at=START)
    assert await chains.find("bob", "resp_1") is None
    await chains.keep("bob", ("resp_1",), ChainLink("s2", "t2"), at=START)
    assert await chains.find("ann", "resp_1") == LINK


async def test_the_latest_exchange_of_a_name_counts(chains: ResponseChains) -> None:
    await chains.keep("ann", ("conv_1",), LINK, at=START)
    await chains.keep("ann", ("conv_1",), ChainLink("s1", "t2"), at=START + 1)
    assert await chains.find("ann", "conv_1") == ChainLink("s1", "t2")


@pytest.mark.parametrize("name", ["", " ", "x" * 300, "a\x00b", "\ud800"])
async def test_what_is_no_id_names_nothing(chains: ResponseChains, name: str) -> None:
    await chains.keep("ann", (name, "resp_1"), LINK, at=START)
    assert await chains.find("ann", name) is None
    assert await chains.find("ann", "resp_1") == LINK


async def test_every_process_finds_it_and_so_does_a_later_one(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        await one.log.chains.keep("ann", ("resp_1",), LINK, at=START)
        assert await two.log.chains.find("ann", "resp_1") == LINK
    async with deployment.start() as later:
        assert await later.log.chains.find("ann", "resp_1") == LINK


async def test_the_oldest_go_first_of_one_user_and_nobody_else_s(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_chains, redis_chains):
        monkeypatch.setattr(module, "USER_LINKS_MAX", 3)
    async with deployment.start() as one:
        await one.log.chains.keep("bob", ("resp_0",), LINK, at=START)
        for number in range(5):
            await one.log.chains.keep("ann", (f"resp_{number}",), LINK, at=START)
    async with deployment.start() as two:
        found = [await two.log.chains.find("ann", f"resp_{number}") for number in range(5)]
        assert found == [None, None, LINK, LINK, LINK]
        assert await two.log.chains.find("bob", "resp_0") == LINK


async def test_what_is_too_old_goes(deployment: Deployment) -> None:
    async with deployment.start() as one:
        await one.log.chains.keep("ann", ("resp_1",), LINK, at=START)
        await one.log.chains.keep("bob", ("resp_1",), LINK, at=START + retention.LINK_SECONDS_MAX + 1)
    async with deployment.start() as two:
        assert await two.log.chains.find("ann", "resp_1") is None


async def test_erased_exchanges_are_gone_in_every_process(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        await one.log.chains.keep("ann", ("resp_1",), LINK, at=START)
        await one.log.chains.keep("bob", ("resp_1",), LINK, at=START)
        await two.log.chains.erase("ann")
        assert await one.log.chains.find("ann", "resp_1") is None
        assert await two.log.chains.find("ann", "resp_1") is None
        assert await one.log.chains.find("bob", "resp_1") == LINK


async def test_an_exchange_is_found_while_it_is_being_written(chains: ResponseChains) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(chains.keep("ann", ("resp_1",), LINK, at=START))
        await asyncio.sleep(0)
        assert await chains.find("ann", "resp_1") == LINK


async def test_what_was_said_up_to_an_exchange_is_found_in_its_own_scope(deployment: Deployment) -> None:
    async with deployment.start() as process:
        scope = Scope("ann", "p", session_id="s1")
        for number, of in enumerate(
            (scope, scope, scope, replace(scope, project_id="q"), replace(scope, user_id="bob"))
        ):
            message = Message("user", f"said {number}")
            await process.log.append(Turn(f"t{number}", of, START, (message,), TurnStatus.CLOSED, answer=f"a{number}"))
        chains = process.log.chains
        await chains.keep("ann", ("resp_1",), ChainLink("s1", "t1"), at=START)
        await chains.keep("ann", ("resp_2",), ChainLink("s1", ""), at=START)

        async def said(name: str, of: Scope = scope, limit: int = 9) -> list[str]:
            return [turn.id for turn in await chains.said_before(of, name, limit=limit)]

        assert await said("resp_1") == ["t0", "t1"]
        assert await said("resp_1", limit=1) == ["t1"]
        assert await said("resp_2") == ["t0", "t1", "t2"]
        assert await said("resp_1", Scope("ann", session_id="s1")) == []
        assert await said("resp_1", Scope("bob", "p", session_id="s1")) == []
        assert await said("resp_9") == []
        (turn,) = await chains.said_before(scope, "resp_1", limit=1)
        assert (turn.messages[0].content, turn.answer) == ("said 1", "a1")
        await process.log.withdraw("ann", opened_before=inf, only=["t1"])
        assert await said("resp_1") == ["t0"]


def test_keys_follow_each_other_once_and_only_the_latest_are_kept() -> None:
    assert LINK.followed_by("k3") == ("k1", "k2", "k3")
    assert LINK.followed_by("k1", "") == ("k1", "k2")
    many = ChainLink("s", "t", tuple(str(n) for n in range(NOTE_KEYS_MAX)))
    assert many.followed_by("new") == (*(str(n) for n in range(1, NOTE_KEYS_MAX)), "new")
