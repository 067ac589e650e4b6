"""The REST API: who calls, and whom it believes."""

from __future__ import annotations

import httpx
import pytest
from api_parts import ANN, SECRET, api_of, assert_refused
from library_parts import Parts


async def test_in_development_the_header_or_the_query_says_who_calls(parts: Parts) -> None:
    async with api_of(parts) as api:
        await add_one_as(api, "ann")
        assert (await api.get("/v1/memory/stats?user_id=ann")).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats", headers=ANN)).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats?user_id=ann", headers=ANN)).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats?user_id=bob")).json()["memories"]["active"] == 0
        assert_refused(await api.get("/v1/memory/stats?user_id=bob", headers=ANN), 403, "forbidden")
        assert_refused(await api.get("/v1/memory/stats"), 401, "unauthenticated", "x-authz-user-id")


async def add_one_as(api: httpx.AsyncClient, user_id: str) -> str:
    answer = await api.post("/v1/memory", params={"user_id": user_id}, json={"memories": [{"content": "x"}]})
    return str(answer.json()["ids"][0])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([("x-authz-user-id", "ann")], 401),
        ([("x-authz-user-id", "ann"), ("x-memory-edge-secret", "wrong")], 401),
        ([("x-authz-user-id", "ann"), ("x-memory-edge-secret", SECRET), ("x-memory-edge-secret", SECRET)], 401),
        ([("x-memory-edge-secret", SECRET)], 401),
        ([("x-authz-user-id", "ann"), ("x-memory-edge-secret", SECRET)], 200),
        ([("x-authz-user-id", "ann"), ("x-authz-user-id", "bob"), ("x-memory-edge-secret", SECRET)], 400),
    ],
)
async def test_outside_development_the_header_counts_only_beside_the_edges_secret(
    headers: list[tuple[str, str]], status: int, parts: Parts
) -> None:
    async with api_of(parts, identity_mode="header") as api:
        assert (await api.get("/v1/memory/stats", headers=headers)).status_code == status
        expected = {200: 200, 401: 401, 400: 400}[status]
        assert (await api.get("/v1/memory/stats?user_id=ann", headers=headers)).status_code == expected


async def test_without_a_secret_set_nobody_is_believed_outside_development(parts: Parts) -> None:
    async with api_of(parts, identity_mode="header", edge_secret="") as api:
        headers = {**ANN, "x-memory-edge-secret": ""}
        assert_refused(await api.get("/v1/memory/stats", headers=headers), 401)


@pytest.mark.parametrize("user_id", [b" ann", b"ann\xe2\x80\x8b", b"a" * 257, b"\xff", b""])
async def test_an_id_that_cannot_be_is_refused(api: httpx.AsyncClient, user_id: bytes) -> None:
    answer = await api.get("/v1/memory/stats", headers={b"x-authz-user-id": user_id})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "query", ["user_id=%FF", "user_id=ann&user_id=bob", "user_id=ann%00", "user_id=", "user_id=%ed%a0%80"]
)
async def test_an_id_in_the_query_that_cannot_be_is_refused(parts: Parts, query: str) -> None:
    async with api_of(parts) as api:
        assert_refused(await api.get(f"/v1/memory/stats?{query}"), 400)


async def test_ids_are_compared_exactly(parts: Parts) -> None:
    async with api_of(parts) as api:
        alike = ["ann", "Ann", "ann.", "änn", "a\u0308nn", "ann\u2024", 'ann" or "a"=="a']
        ids = {user: await add_one_as(api, user) for user in alike}
        for user in alike:
            seen = (await api.get("/v1/memory", params={"user_id": user})).json()["memories"]
            assert [m["id"] for m in seen] == [ids[user]]
        assert_refused(await api.get(f"/v1/memory/{ids['Ann']}", params={"user_id": "ann"}), 404, "no such memory")
