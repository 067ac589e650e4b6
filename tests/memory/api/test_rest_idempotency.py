"""Calls that are repeated with an idempotency key."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from api_parts import BOB, assert_refused
from library_parts import Parts

KEY = {"idempotency-key": "k-1"}
TEA = {"memories": [{"content": "I like tea"}, {"content": "I sail", "metadata": {"a": 1}}]}
SAID = [{"role": role, "content": f"{role} {n}"} for n in range(3) for role in ("user", "assistant")]
TURNS: dict[str, Any] = {"session_id": "s", "messages": SAID}


async def count(api: httpx.AsyncClient) -> int:
    return len((await api.get("/v1/memory")).json()["memories"])


async def test_the_same_key_and_body_write_once_and_get_the_same_answer(api: httpx.AsyncClient, parts: Parts) -> None:
    first = await api.post("/v1/memory", json=TEA, headers=KEY)
    assert first.status_code == 201
    parts.now += 60
    again = await api.post("/v1/memory", json=TEA, headers=KEY)
    assert (again.status_code, again.json()) == (201, first.json())
    assert await count(api) == 2
    assert (await api.post("/v1/memory", json=TEA)).json() != first.json()
    assert await count(api) == 4


async def test_calls_at_the_same_time_write_once(api: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(api.post("/v1/memory", json=TEA, headers=KEY) for _ in range(5)))
    assert len({answer.text for answer in answers}) == 1
    assert await count(api) == 2


async def test_turns_are_appended_once(api: httpx.AsyncClient, parts: Parts) -> None:
    answers = [await api.post("/v1/memory/turns", json=TURNS, headers=KEY) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len([turn async for turn in parts.library.turns("ann")]) == 3


async def test_the_same_key_with_another_request_is_422_and_writes_nothing(api: httpx.AsyncClient) -> None:
    await api.post("/v1/memory", json=TEA, headers=KEY)
    other = {"memories": TEA["memories"][:1]}
    assert_refused(await api.post("/v1/memory", json=other, headers=KEY), 422, "idempotency_key_reused")
    assert_refused(await api.post("/v1/memory/turns", json=TURNS, headers=KEY), 422)
    assert await count(api) == 2
    assert (await api.post("/v1/memory", json=other, headers=KEY | BOB)).status_code == 201


async def test_a_call_that_was_interrupted_is_completed_without_a_second_effect(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.embedder.is_down = True
    assert (await api.post("/v1/memory", json=TEA, headers=KEY)).status_code == 503
    parts.embedder.is_down = False

    async def lost(*_: Any, **__: Any) -> None:
        raise OSError("the process died here")

    keys = parts.library._repeatable._keys
    with monkeypatch.context() as patched:
        patched.setattr(keys, "answered", lost)
        assert (await api.post("/v1/memory", json=TEA, headers=KEY)).status_code == 500
    assert await count(api) == 2
    assert (await api.post("/v1/memory", json=TEA, headers=KEY)).status_code == 201
    assert await count(api) == 2


async def test_repeating_restores_nothing_that_was_forgotten_and_erasing_takes_the_keys(
    api: httpx.AsyncClient, parts: Parts
) -> None:
    ids = (await api.post("/v1/memory", json=TEA, headers=KEY)).json()["ids"]
    await api.delete(f"/v1/memory/{ids[0]}")
    assert (await api.post("/v1/memory", json=TEA, headers=KEY)).json()["ids"] == ids
    assert await count(api) == 1
    await api.delete("/v1/memory?user_id=ann")
    parts.now += 1
    assert (await api.post("/v1/memory", json=TEA, headers=KEY)).json()["ids"] != ids
    assert await count(api) == 2


async def interrupted(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch, path: str, body: Any
) -> None:
    """A call that has written everything, of which the process dies before it has noted the answer."""

    async def lost(*_: Any, **__: Any) -> None:
        raise OSError("the process died here")

    with monkeypatch.context() as patched:
        patched.setattr(parts.library._repeatable._keys, "answered", lost)
        assert (await api.post(path, json=body, headers=KEY)).status_code == 500


async def test_repeating_an_interrupted_call_restores_no_forgotten_memory(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    await interrupted(api, parts, monkeypatch, "/v1/memory", TEA)
    found = {one["content"]: one["id"] for one in (await api.get("/v1/memory")).json()["memories"]}
    assert (await api.delete(f"/v1/memory/{found['I like tea']}")).status_code < 300
    await api.patch(f"/v1/memory/{found['I sail']}", json={"content": "I row"})
    again = await api.post("/v1/memory", json=TEA, headers=KEY)
    assert again.json()["ids"] == [found["I like tea"], found["I sail"]]
    assert [one["content"] for one in (await api.get("/v1/memory")).json()["memories"]] == ["I row"]


async def test_repeating_an_interrupted_call_restores_no_forgotten_turn(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    await interrupted(api, parts, monkeypatch, "/v1/memory/turns", TURNS)
    turns = [turn.id async for turn in parts.library.turns("ann")]
    assert (await api.delete(f"/v1/memory/turns/{turns[1]}")).status_code < 300
    assert (await api.post("/v1/memory/turns", json=TURNS, headers=KEY)).json() == {"turn_id": turns[2]}
    assert [turn.id async for turn in parts.library.turns("ann")] == [turns[0], turns[2]]


@pytest.mark.parametrize("is_opting_out", [False, True])
async def test_a_slow_call_writes_nothing_that_was_decided_otherwise_meanwhile(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch, *, is_opting_out: bool
) -> None:
    is_slow, may_go_on, embed = asyncio.Event(), asyncio.Event(), parts.embedder.embed

    async def waits(*texts: Any, **options: Any) -> Any:
        if not is_slow.is_set():
            is_slow.set()
            await may_go_on.wait()
        return await embed(*texts, **options)

    monkeypatch.setattr(parts.embedder, "embed", waits)
    async with asyncio.TaskGroup() as tasks:
        slow = tasks.create_task(api.post("/v1/memory", json=TEA, headers=KEY))
        await asyncio.wait_for(is_slow.wait(), 30)
        if is_opting_out:
            await api.put("/v1/memory/opt-out")
        else:
            ids = (await api.post("/v1/memory", json=TEA, headers=KEY)).json()["ids"]
            await api.patch(f"/v1/memory/{ids[0]}", json={"content": "I like cocoa"})
            for memory_id in ids:
                await api.delete(f"/v1/memory/{memory_id}")
        may_go_on.set()
    assert slow.result().status_code == (403 if is_opting_out else 201)
    assert await count(api) == 0


async def test_erasing_one_project_keeps_the_keys(api: httpx.AsyncClient, parts: Parts) -> None:
    first = await api.post("/v1/memory", json=TEA, headers=KEY)
    await api.delete("/v1/memory?user_id=ann&project_id=other")
    parts.now += 1
    assert (await api.post("/v1/memory", json=TEA, headers=KEY)).json() == first.json()
    assert await count(api) == 2


@pytest.mark.parametrize("key", [" k", "a\tb", "k" * 257])
async def test_a_key_that_cannot_be_is_refused(api: httpx.AsyncClient, key: str) -> None:
    assert_refused(await api.post("/v1/memory", json=TEA, headers={"idempotency-key": key}), 400)
