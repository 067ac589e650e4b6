"""ETags: readers spare the body of what they have, and writers change only what they have read."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest
from api_parts import BOB, add_one, assert_refused
from library_parts import NOW, Parts

from memory.errors import BadInput, NotFound
from memory.model import Memory
from memory.model.versions import VersionChanged, version_of
from memory.service.requests import MemoryEdit

MATCHES = ["{}", "*", '"other", {}', '{},"other"', ' "other" ,\t{} ']
STALE = ['"other"', "W/{}", '"other", "another"', '""']
INVALID = ["other", '"{}"', '"', "", "*, {}", "{}, *", "'x'", ",".join(['"x"'] * 101)]


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


@pytest.mark.parametrize("match", [*MATCHES, "W/{}"])
async def test_what_the_caller_has_is_not_sent_again(api: httpx.AsyncClient, match: str) -> None:
    one = await add_one(api)
    tag = await tag_of(api, one)
    for method in ("GET", "HEAD"):
        answer = await api.request(method, f"/v1/memory/{one}", headers={"if-none-match": match.replace("{}", tag)})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert_refused(await api.get(f"/v1/memory/{one}", headers=BOB | {"if-none-match": "*"}), 404)


@pytest.mark.parametrize("match", ['"other"', '"other", W/"another"', '""'])
async def test_what_the_caller_has_not_is_sent(api: httpx.AsyncClient, match: str) -> None:
    answer = await api.get(f"/v1/memory/{await add_one(api)}", headers={"if-none-match": match})
    assert (answer.status_code, answer.json()["content"]) == (200, "I like tea")


@pytest.mark.parametrize("match", MATCHES)
async def test_a_memory_in_the_version_that_was_read_is_changed_and_deleted(api: httpx.AsyncClient, match: str) -> None:
    one = await add_one(api)

    async def header() -> dict[str, str]:
        return {"if-match": match.replace("{}", await tag_of(api, one))}

    changed = await api.patch(f"/v1/memory/{one}", json={"content": "I like coffee"}, headers=await header())
    assert (changed.status_code, changed.json()["content"]) == (200, "I like coffee")
    assert (await api.delete(f"/v1/memory/{one}", headers=await header())).status_code == 200


@pytest.mark.parametrize("match", STALE)
async def test_a_memory_in_another_version_stays_as_it_is(api: httpx.AsyncClient, match: str) -> None:
    one = await add_one(api)
    before = await api.get(f"/v1/memory/{one}")
    header = {"if-match": match.replace("{}", before.headers["etag"])}
    assert_refused(
        await api.patch(f"/v1/memory/{one}", json={"content": "x"}, headers=header), 412, "precondition_failed", "read"
    )
    assert_refused(await api.delete(f"/v1/memory/{one}", headers=header), 412, "precondition_failed")
    assert (await api.get(f"/v1/memory/{one}")).json() == before.json()


@pytest.mark.parametrize("match", INVALID)
async def test_a_header_that_holds_no_tags_is_refused(api: httpx.AsyncClient, match: str) -> None:
    one = await add_one(api)
    text = match.replace("{}", await tag_of(api, one))
    for method, name in (("GET", "If-None-Match"), ("PATCH", "If-Match"), ("DELETE", "If-Match")):
        body = {"importance": 0.1} if method == "PATCH" else None
        answer = await api.request(method, f"/v1/memory/{one}", json=body, headers={name: text})
        assert_refused(answer, 400, name)


async def test_what_does_not_exist_is_404_whatever_is_expected(api: httpx.AsyncClient) -> None:
    one = await add_one(api)
    for match in ("*", '"other"'):
        headers = BOB | {"if-match": match}
        assert_refused(await api.patch(f"/v1/memory/{one}", json={"importance": 0.1}, headers=headers), 404)
        assert_refused(await api.delete(f"/v1/memory/{one}", headers=headers), 404)


async def test_of_two_writers_with_the_same_version_one_wins(api: httpx.AsyncClient, parts: Parts) -> None:
    one = await add_one(api)
    header = {"if-match": await tag_of(api, one)}
    texts = [f"I like {drink}" for drink in ("coffee", "milk", "juice", "water")]
    answers = await asyncio.gather(
        *(api.patch(f"/v1/memory/{one}", json={"content": text}, headers=header) for text in texts)
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]
    [won] = [answer for answer in answers if answer.status_code == 200]
    assert (await api.get(f"/v1/memory/{one}")).json() == won.json()


async def outcome(call: Coroutine[Any, Any, object]) -> type:
    try:
        await call
    except BadInput as error:
        return type(error)
    return type(None)


@pytest.mark.parametrize("last", ["edit", "delete"])
async def test_the_version_is_compared_while_the_lock_is_held(parts: Parts, last: str) -> None:
    """Both writers have read the memory before the lock is free."""
    library = parts.library
    await parts.put(Memory("m", "ann", "I like tea", NOW, NOW, NOW))
    expected = [version_of(await library.get("ann", "m"))]
    async with asyncio.TaskGroup() as tasks, parts.ledger.write("ann"):
        edit = MemoryEdit(importance=0.1)
        writers = [tasks.create_task(outcome(library.patch("ann", "m", edit, expected=expected)))]
        await asyncio.sleep(0.1)
        other = (
            library.patch("ann", "m", MemoryEdit(importance=0.2), expected=expected)
            if last == "edit"
            else library.delete("ann", "m", expected=expected)
        )
        writers.append(tasks.create_task(outcome(other)))
        await asyncio.sleep(0.1)
        assert not any(writer.done() for writer in writers)
    outcomes = [writer.result() for writer in writers]
    assert outcomes.count(type(None)) == 1
    refused = {VersionChanged, NotFound} if outcomes[1] is type(None) and last == "delete" else {VersionChanged}
    assert set(outcomes) - {type(None)} <= refused
