"""Export and import over REST."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_parts import ANN, BOB, add_one, api_of, assert_refused
from library_parts import Parts, library_parts

from memory.model import Turn
from memory.model.raw_words import raw_row_ids
from memory.model.turns import copied_turn_id
from memory.service import profiles
from memory.service.imported_ids import imported_id
from memory.service.transfers import LINE_BYTES_MAX

LINES = {"content-type": "application/x-ndjson"}
HEADER = b'{"kind":"memproxy-export","user_id":"ann"}\n'
NO_RECORD: dict[str, Any] = {"turns": 0, "messages": 0, "raw_words": 0, "unread": {}}
KINDS = ["memproxy-export", "profile", "memory", "memory", "memory"]


async def test_what_is_exported_is_imported_elsewhere(api: httpx.AsyncClient, tmp_path: Path) -> None:
    ids = [await add_one(api, f"number {n}", created_at=1_000 + n) for n in range(3)]
    await api.put("/v1/profile", json={"pinned": ["Answer in German"]})
    answer = await api.get("/v1/memory/export")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert await kinds_of(api) == KINDS
    assert len((await api.get("/v1/memory/export", headers=BOB)).text.splitlines()) == 1
    (tmp_path / "elsewhere").mkdir()
    async with library_parts(tmp_path / "elsewhere") as parts, api_of(parts, headers=ANN) as elsewhere:
        counts = {"stored": 3, "present": 0, "forgotten": 0, "profiles": 1, **NO_RECORD}
        assert await imported(elsewhere, answer.content) == counts
        await elsewhere.delete(f"/v1/memory/{imported_id('ann', ids[0])}")
        counts |= {"stored": 0, "present": 2, "forgotten": 1, "profiles": 0}
        assert await imported(elsewhere, answer.content.rstrip()) == counts


async def test_an_import_sets_only_so_many_profiles(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "PROFILES_MAX", 2)
    lines = [{"kind": "profile", "project_id": name, "pinned": ["Answer in German"]} for name in ("", "red", "blue")]
    content = HEADER + b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    for _ in range(2):  # those that are set are no new ones
        assert_refused(await api.post("/v1/memory/import", content=content, headers=LINES), 400, "line 4: a user may")
    shown = [await api.get("/v1/profile", params={"project_id": name}) for name in ("red", "blue")]
    assert [answer.status_code for answer in shown] == [200, 404]


async def test_an_import_may_be_larger_than_other_bodies(api: httpx.AsyncClient, parts: Parts) -> None:
    row = {"user_id": "x", "created_at": 1, "updated_at": 1, "said_at": 1}
    rows = [row | {"id": f"m{n}", "content": f"{n} " + "x" * 7_000} for n in range(200)]
    content = HEADER + b"".join(json.dumps({"kind": "memory", "memory": one}).encode() + b"\n" for one in rows)
    assert len(content) > 1 << 20
    assert (await imported(api, content))["stored"] == 200
    assert {m["user_id"] for m in (await api.get("/v1/memory")).json()["memories"]} == {"ann"}


@pytest.mark.parametrize(
    ("content", "headers", "status", "words"),
    [
        (HEADER, {"content-type": "application/json"}, 415, "application/x-ndjson"),
        (HEADER, {}, 415, "application/x-ndjson"),
        (b"", LINES, 400, "empty"),
        (HEADER + b'{"kind":"due","turn_id":"a\\u0000"}\n', LINES, 400, "line 2: the id"),
        (HEADER + b"x" * (LINE_BYTES_MAX + 1), LINES, 413, "line 2"),
    ],
)
async def test_what_is_no_export_is_refused(
    api: httpx.AsyncClient, content: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    assert_refused(await api.post("/v1/memory/import", content=content, headers=headers), status, words)


async def imported(api: httpx.AsyncClient, content: bytes) -> Any:
    return (await api.post("/v1/memory/import", content=content, headers=LINES)).json()


async def kinds_of(api: httpx.AsyncClient) -> list[str]:
    return [json.loads(line)["kind"] for line in (await api.get("/v1/memory/export")).text.splitlines()]


async def test_the_conversation_record_goes_along_and_stays_deleted_where_it_was(
    api: httpx.AsyncClient, parts: Parts, live: Callable[[str], Awaitable[Turn]], tmp_path: Path
) -> None:
    learnt = await live("red")
    said = [{"role": "user", "content": "I sail on Sundays"}]
    waiting = await api.post("/v1/memory/turns", json={"session_id": "s2", "at": 2_000, "messages": said})
    exported = (await api.get("/v1/memory/export")).content
    assert await kinds_of(api) == [*KINDS[:4], "turn", "turn", "due", "message", "raw_words"]
    plain = (await api.get("/v1/memory/export", params={"record": "false"})).content
    assert plain == b"".join(exported.splitlines(keepends=True)[:4])
    (tmp_path / "elsewhere").mkdir()
    async with library_parts(tmp_path / "elsewhere") as other, api_of(other, headers=BOB) as bob:
        recorded = {"turns": 2, "messages": 1, "raw_words": 1}
        stored = {"stored": 2, "present": 0, "forgotten": 0, "profiles": 1}
        assert await imported(bob, exported) == stored | NO_RECORD | recorded
        theirs, ours = [(await one.get("/v1/memory/messages/export")).text for one in (bob, api)]
        for one in (learnt.id, waiting.json()["turn_id"]):
            theirs = theirs.replace(copied_turn_id("bob", one), one)
        assert theirs.replace('"bob"', '"ann"') == ours
        found = await other.lease()  # only what was not learnt yet
        assert found is not None
        assert [one.messages[0].content for one in found.turns] == ["I sail on Sundays"]
        turn_id = copied_turn_id("bob", learnt.id)
        raw = await other.store.memories("bob", raw_row_ids("bob", turn_id))
        assert [one.content for one in raw] == ["I work on red"]
        assert {quoted.turn_id for one in raw for quoted in one.evidence} == {turn_id}
        assert (await bob.delete(f"/v1/memory/turns/{turn_id}")).is_success
        again = await imported(bob, exported)
        assert (again["turns"], again["raw_words"]) == (0, 0)
        assert await kinds_of(bob) == [*KINDS[:4], "turn", "due", "message"]
    async with api_of(parts, headers=BOB) as thief:  # in one system, nobody takes another's turn
        lines = exported.splitlines(keepends=True)
        assert (await imported(thief, lines[0] + lines[4]))["turns"] == 1
    back = await imported(api, exported)
    assert (back["turns"], back["present"], back["raw_words"]) == (0, 2, 0)
    assert (await api.delete(f"/v1/memory/turns/{learnt.id}")).is_success
    gone = await imported(api, exported)
    assert (gone["turns"], gone["raw_words"]) == (0, 0)
