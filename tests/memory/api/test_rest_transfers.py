"""Export and import over REST."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from api_parts import ANN, BOB, add_one, api_of, assert_refused
from library_parts import Parts, library_parts

from memory.service.transfers import LINE_BYTES_MAX

LINES = {"content-type": "application/x-ndjson"}
HEADER = b'{"kind":"memproxy-export","user_id":"ann"}\n'


async def test_what_is_exported_is_imported_elsewhere(api: httpx.AsyncClient, tmp_path: Path) -> None:
    ids = [await add_one(api, f"number {n}", created_at=1_000 + n) for n in range(3)]
    answer = await api.get("/v1/memory/export")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["kind"] for line in answer.text.splitlines()] == ["memproxy-export", *["memory"] * 3]
    assert len((await api.get("/v1/memory/export", headers=BOB)).text.splitlines()) == 1
    (tmp_path / "elsewhere").mkdir()
    async with library_parts(tmp_path / "elsewhere") as parts, api_of(parts, headers=ANN) as elsewhere:
        counts = (await elsewhere.post("/v1/memory/import", content=answer.content, headers=LINES)).json()
        assert counts == {"stored": 3, "present": 0, "forgotten": 0}
        assert (await elsewhere.get("/v1/memory")).json() == (await api.get("/v1/memory")).json()
        assert (await elsewhere.get("/v1/memory/export")).content == answer.content
        await elsewhere.delete(f"/v1/memory/{ids[0]}")
        again = await elsewhere.post("/v1/memory/import", content=answer.content, headers=LINES)
        assert again.json() == {"stored": 0, "present": 2, "forgotten": 1}


async def test_an_import_may_be_larger_than_other_bodies(api: httpx.AsyncClient, parts: Parts) -> None:
    line = json.loads(b'{"kind":"memory","memory":{"user_id":"x","created_at":1,"updated_at":1,"said_at":1}}')
    rows = [{**line["memory"], "id": f"m{n}", "content": f"{n} " + "x" * 7_000} for n in range(200)]
    content = HEADER + b"".join(json.dumps(line | {"memory": row}).encode() + b"\n" for row in rows)
    assert len(content) > 1 << 20
    answer = await api.post("/v1/memory/import", content=content, headers=LINES)
    assert answer.json()["stored"] == 200
    assert {m["user_id"] for m in (await api.get("/v1/memory")).json()["memories"]} == {"ann"}


@pytest.mark.parametrize(
    ("content", "headers", "status", "words"),
    [
        (HEADER, {"content-type": "application/json"}, 415, "application/x-ndjson"),
        (HEADER, {}, 415, "application/x-ndjson"),
        (b"", LINES, 400, "empty"),
        (HEADER + b"{}\n", LINES, 400, "line 2"),
        (HEADER + b"x" * (LINE_BYTES_MAX + 1), LINES, 413, "bytes"),
    ],
)
async def test_what_is_no_export_is_refused(
    api: httpx.AsyncClient, content: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    assert_refused(await api.post("/v1/memory/import", content=content, headers=headers), status, words)
