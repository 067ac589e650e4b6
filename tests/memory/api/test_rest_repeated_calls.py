"""Calls that are repeated with an idempotency key, and ETags: nothing is written twice, or over what nobody read."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import httpx
import pytest
from api_parts import BOB, add_one, assert_refused
from library_parts import Parts

KEY = {"idempotency-key": "k-1"}
TEA = {"memories": [{"content": "I like tea"}, {"content": "I sail", "metadata": {"a": 1}}]}
SAID = [{"role": role, "content": f"{role} {n}"} for n in range(3) for role in ("user", "assistant")]
TURNS: dict[str, Any] = {"session_id": "s", "messages": SAID}
MATCHES = ["{}", "*", '"other", {}', '{},"other"', ' "other" ,\t{} ']
STALE = ['"other"', "W/{}", '"other", "another"', '""']
INVALID = ["other", '"{}"', '"', "", "*, {}", "{}, *", "'x'", ",".join(['"x"'] * 101)]


# Idempotency keys


async def count(api: httpx.AsyncClient) -> int:
    return len((await api.get("/v1/memory")).json()["memories"])


async def test_the_same_key_and_body_write_once_also_at_the_same_time(api: httpx.AsyncClient, parts: Parts) -> None:
    for path, body, key in (("/v1/memory", TEA, KEY), ("/v1/memory/turns", TURNS, {"idempotency-key": "k-2"})):
        answers = await asyncio.gather(*(api.post(path, json=body, headers=key) for _ in range(5)))
        parts.now += 60
        answers.append(await api.post(path, json=body, headers=key))
        assert len({(answer.status_code, answer.text) for answer in answers}) == 1
        assert answers[0].is_success
    assert await count(api) == 2
    assert len([turn async for turn in parts.library.turns("ann")]) == 3
    assert (await api.post("/v1/memory", json=TEA)).is_success
    assert await count(api) == 4


async def test_a_key_of_another_request_or_that_cannot_be_is_refused_and_writes_nothing(api: httpx.AsyncClient) -> None:
    await api.post("/v1/memory", json=TEA, headers=KEY)
    other = {"memories": TEA["memories"][:1]}
    assert_refused(await api.post("/v1/memory", json=other, headers=KEY), 422, "idempotency_key_reused")
    assert_refused(await api.post("/v1/memory/turns", json=TURNS, headers=KEY), 422)
    for key in (" k", "a\tb", "k" * 257):
        assert_refused(await api.post("/v1/memory", json=TEA, headers={"idempotency-key": key}), 400)
    assert await count(api) == 2
    assert (await api.post("/v1/memory", json=other, headers=KEY | BOB)).status_code == 201


async def test_repeating_restores_nothing_forgotten_and_erasing_ends_keys(api: httpx.AsyncClient, parts: Parts) -> None:
    ids = (await api.post("/v1/memory", json=TEA, headers=KEY)).json()["ids"]
    await api.delete(f"/v1/memory/{ids[0]}")
    assert (await api.post("/v1/memory", json=TEA, headers=KEY)).json()["ids"] == ids
    assert await count(api) == 1
    await api.delete("/v1/memory?user_id=ann&project_id=other")  # erasing one project keeps the keys
    parts.now += 1
    assert (await api.post("/v1/memory", json=TEA, headers=KEY)).json()["ids"] == ids
    await api.delete("/v1/memory?user_id=ann")
    parts.now += 1
    assert (await api.post("/v1/memory", json=TEA, headers=KEY)).json()["ids"] != ids
    assert await count(api) == 2


async def interrupted(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch, path: str, body: Any, key: Any = None
) -> None:
    """A call that has written everything, of which the process dies before it has noted the answer."""

    async def lost(*_: Any, **__: Any) -> None:
        raise OSError("the process died here")

    with monkeypatch.context() as patched:
        patched.setattr(parts.library._repeatable._keys, "answered", lost)
        assert (await api.post(path, json=body, headers=key or KEY)).status_code == 500


async def test_an_interrupted_call_is_completed_without_a_second_effect_and_restores_nothing_forgotten(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.embedder.is_down = True
    assert (await api.post("/v1/memory", json=TEA, headers=KEY)).status_code == 503
    parts.embedder.is_down = False
    for _ in range(2):
        await interrupted(api, parts, monkeypatch, "/v1/memory", TEA)
        assert await count(api) == 2
    found = {one["content"]: one["id"] for one in (await api.get("/v1/memory")).json()["memories"]}
    assert (await api.delete(f"/v1/memory/{found['I like tea']}")).status_code < 300
    await api.patch(f"/v1/memory/{found['I sail']}", json={"content": "I row"})
    again = await api.post("/v1/memory", json=TEA, headers=KEY)
    assert again.json()["ids"] == [found["I like tea"], found["I sail"]]
    assert [one["content"] for one in (await api.get("/v1/memory")).json()["memories"]] == ["I row"]
    of_turns = {"idempotency-key": "k-2"}
    await interrupted(api, parts, monkeypatch, "/v1/memory/turns", TURNS, of_turns)
    turns = [turn.id async for turn in parts.library.turns("ann")]
    assert (await api.delete(f"/v1/memory/turns/{turns[1]}")).status_code < 300
    assert (await api.post("/v1/memory/turns", json=TURNS, headers=of_turns)).json() == {"turn_id": turns[2]}
    assert [turn.id async for turn in parts.library.turns("ann")] == [turns[0], turns[2]]


async def test_a_slow_call_writes_nothing_that_was_decided_otherwise_meanwhile(
    api: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
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
        await is_slow.wait()
        ids = (await api.post("/v1/memory", json=TEA, headers=KEY)).json()["ids"]
        await api.patch(f"/v1/memory/{ids[0]}", json={"content": "I like cocoa"})
        for memory_id in ids:
            await api.delete(f"/v1/memory/{memory_id}")
        may_go_on.set()
    assert slow.result().status_code == 201
    assert await count(api) == 0


# Entity tags


async def tag_of(api: httpx.AsyncClient, memory_id: str) -> str:
    return (await api.get(f"/v1/memory/{memory_id}")).headers["etag"]


async def test_a_tag_changes_with_the_memory_and_with_nothing_else(api: httpx.AsyncClient, parts: Parts) -> None:
    one, two = await add_one(api), await add_one(api)
    before = await tag_of(api, one)
    assert before == await tag_of(api, one) != await tag_of(api, two)
    assert (before[0], before[-1]) == ('"', '"')
    parts.now += 1
    changed = await api.patch(f"/v1/memory/{one}", json={"importance": 0, "metadata": {"b": 1, "a": [1.0, None]}})
    assert changed.headers["etag"] == await tag_of(api, one) != before
    await api.patch(f"/v1/memory/{two}", json={"content": "I like coffee"})
    assert await tag_of(api, one) == changed.headers["etag"]


async def test_what_the_caller_has_is_not_sent_again(api: httpx.AsyncClient) -> None:
    one = await add_one(api)
    tag, path = await tag_of(api, one), f"/v1/memory/{one}"
    for method, match in product(("GET", "HEAD"), (*MATCHES, "W/{}")):
        answer = await api.request(method, path, headers={"if-none-match": match.replace("{}", tag)})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    for match in ('"other"', '"other", W/"another"', '""'):
        answer = await api.get(path, headers={"if-none-match": match})
        assert (answer.status_code, answer.json()["content"]) == (200, "I like tea")
    assert_refused(await api.get(path, headers=BOB | {"if-none-match": "*"}), 404)


@pytest.mark.parametrize("match", MATCHES)
async def test_a_memory_in_the_version_that_was_read_is_changed_and_deleted(api: httpx.AsyncClient, match: str) -> None:
    one = await add_one(api)

    async def header() -> dict[str, str]:
        return {"if-match": match.replace("{}", await tag_of(api, one))}

    changed = await api.patch(f"/v1/memory/{one}", json={"content": "I like coffee"}, headers=await header())
    assert (changed.status_code, changed.json()["content"]) == (200, "I like coffee")
    assert (await api.delete(f"/v1/memory/{one}", headers=await header())).status_code == 200


async def test_a_memory_in_another_version_stays_as_it_is(api: httpx.AsyncClient) -> None:
    path = f"/v1/memory/{await add_one(api)}"
    before = await api.get(path)
    for match in STALE:
        header = {"if-match": match.replace("{}", before.headers["etag"])}
        changed = await api.patch(path, json={"content": "x"}, headers=header)
        assert_refused(changed, 412, "precondition_failed", "read")
        assert_refused(await api.delete(path, headers=header), 412, "precondition_failed")
    for header in ({"if-match": match} | BOB for match in ("*", '"other"')):
        assert_refused(await api.patch(path, json={"importance": 0.1}, headers=header), 404)
        assert_refused(await api.delete(path, headers=header), 404)
    assert (await api.get(path)).json() == before.json()


async def test_a_header_that_holds_no_tags_is_refused(api: httpx.AsyncClient) -> None:
    one = await add_one(api)
    tag = await tag_of(api, one)
    for match in INVALID:
        for method, name in (("GET", "If-None-Match"), ("PATCH", "If-Match"), ("DELETE", "If-Match")):
            body = {"importance": 0.1} if method == "PATCH" else None
            headers = {name: match.replace("{}", tag)}
            assert_refused(await api.request(method, f"/v1/memory/{one}", json=body, headers=headers), 400, name)


async def test_of_writers_with_the_same_version_one_wins(api: httpx.AsyncClient) -> None:
    """All have read the memory before one of them holds the lock."""
    one = await add_one(api)
    header = {"if-match": await tag_of(api, one)}
    texts = [f"I like {drink}" for drink in ("coffee", "milk", "juice")]
    answers = await asyncio.gather(
        *(api.patch(f"/v1/memory/{one}", json={"content": text}, headers=header) for text in texts),
        api.delete(f"/v1/memory/{one}", headers=header),
    )
    [won] = [answer for answer in answers if answer.is_success]
    assert {answer.status_code for answer in answers if answer is not won} <= {412, 404}
    left = await api.get(f"/v1/memory/{one}")
    assert left.status_code == 404 if won is answers[-1] else left.json() == won.json()
