"""Who calls the REST API, and whom it believes: development, the edge's secret, users' tokens, programs' tokens."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from api_parts import ANN, SECRET, add_one, api_of, assert_refused, claims, counted, service_token, with_token
from library_parts import Parts
from prometheus_client import CollectorRegistry

from memory.api.callers import CallerRules
from memory.model.token_claims import ClaimNames
from memory.runtime.metrics import Metrics

IMPORTER, READER, STRANGER = "mpt_importer-0123456789", "mpt_reader-0123456789", "mpt_stranger-0123456789"
RULES = CallerRules(
    ClaimNames(tenant="tenant", project="projects"),
    (service_token("importer", IMPORTER, "read", "write"), service_token("reader", READER, "read", users={"ann"})),
)
TENANTS = CallerRules(ClaimNames(tenant="tenant"))


async def test_in_development_the_header_or_the_query_says_who_calls_by_an_id_that_can_be(parts: Parts) -> None:
    async with api_of(parts) as api:
        await api.post("/v1/memory?user_id=ann", json={"memories": [{"content": "x"}]})
        assert (await api.get("/v1/memory/stats?user_id=ann")).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats", headers=ANN)).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats?user_id=ann", headers=ANN)).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats?user_id=bob")).json()["memories"]["active"] == 0
        assert_refused(await api.get("/v1/memory/stats?user_id=bob", headers=ANN), 403, "forbidden")
        assert_refused(await api.get("/v1/memory/stats"), 401, "unauthenticated", "x-authz-user-id")
        for user_id in (b" ann", b"ann\xe2\x80\x8b", b"a" * 257, b"\xff", b""):
            assert_refused(await api.get("/v1/memory/stats", headers={b"x-authz-user-id": user_id}), 400)
        for name in ("%FF", "ann&user_id=bob", "ann%00", "", "%ed%a0%80"):
            assert_refused(await api.get(f"/v1/memory/stats?user_id={name}"), 400)


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
        assert (await api.get("/v1/memory/stats?user_id=ann", headers=headers)).status_code == status
    async with api_of(parts, identity_mode="header", edge_secret="") as unset:
        assert_refused(await unset.get("/v1/memory/stats", headers=ANN | {"x-memory-edge-secret": ""}), 401)


async def test_ids_are_compared_exactly(parts: Parts) -> None:
    async with api_of(parts) as api:
        alike = ["ann", "Ann", "ann.", "änn", "a\u0308nn", "ann\u2024", 'ann" or "a"=="a']
        for user in alike:
            await api.post("/v1/memory", params={"user_id": user}, json={"memories": [{"content": f"of {user}"}]})
        ids = dict[str, str]()
        for user in alike:
            seen = (await api.get("/v1/memory", params={"user_id": user})).json()["memories"]
            assert [m["content"] for m in seen] == [f"of {user}"]
            ids[user] = seen[0]["id"]
        assert_refused(await api.get(f"/v1/memory/{ids['Ann']}", params={"user_id": "ann"}), 404, "no such memory")


# Users


async def test_claims_count_only_beside_the_edges_secret_and_in_mode_jwt(parts: Parts) -> None:
    mine = claims(sub="ann", projects="red")
    async with api_of(parts, identity_mode="jwt", rules=RULES) as api:
        assert (await api.get("/v1/memory", headers=mine)).status_code == 200
        for secret in ({}, {"x-memory-edge-secret": "guess"}):
            bare = {"x-memory-token-claims": mine["x-memory-token-claims"], **secret}
            assert_refused(await api.get("/v1/memory", headers=bare), 401)
        assert_refused(await api.get("/v1/memory", headers={"x-memory-edge-secret": SECRET}), 401, "valid token")
        assert_refused(await api.get("/v1/memory", headers=mine | ANN), 400)
        two = [*mine.items(), ("x-memory-token-claims", claims(sub="bob")["x-memory-token-claims"])]
        assert_refused(await api.get("/v1/memory", headers=two), 401)
        for said in ({}, {"sub": 7}, {"sub": "ann "}, {"sub": "ann", "tenant": ""}, {"sub": "ann"}):
            assert_refused(await api.get("/v1/memory", headers=claims(**said)), 401, "does not say who")
    for mode in ("header", "development"):
        async with api_of(parts, identity_mode=mode, rules=RULES) as api:
            assert_refused(await api.get("/v1/memory", headers=mine), 401)


async def test_tenants_share_nothing_and_the_query_names_the_user_as_the_token_does(parts: Parts) -> None:
    async with api_of(parts, identity_mode="jwt", rules=TENANTS, headers=claims(sub="ann")) as api:
        memory_id = await add_one(api)
        assert (await api.get("/v1/memory?user_id=ann")).json()["memories"][0]["id"] == memory_id
        other = claims(sub="ann", tenant="other")
        assert (await api.get("/v1/memory", headers=other)).json()["memories"] == []
        assert_refused(await api.get(f"/v1/memory/{memory_id}", headers=other), 404)
        operator = {"x-authz-user-id": "acme/ann", "x-memory-edge-secret": SECRET}
    async with api_of(parts, identity_mode="jwt", rules=TENANTS) as api:
        assert (await api.get("/v1/memory", headers=operator)).json()["memories"][0]["id"] == memory_id


@pytest.mark.parametrize("sub", ["ann", "ann/acme", "50%", "acme/ann"])
async def test_the_user_that_an_answer_shows_can_be_sent_back_by_the_same_caller_alone(parts: Parts, sub: str) -> None:
    async with api_of(parts, identity_mode="jwt", rules=TENANTS, headers=claims(sub=sub)) as api:
        memory_id = await add_one(api)
        shown = (await api.get(f"/v1/memory/{memory_id}")).json()["user_id"]
        assert shown != sub
        for name in (sub, shown):
            answer = await api.get("/v1/memory", params={"user_id": name})
            assert [one["id"] for one in answer.json()["memories"]] == [memory_id]
        for stranger in (claims(sub=sub, tenant="other"), claims(sub="bob"), claims(sub="bob", tenant="other")):
            assert_refused(await api.get("/v1/memory", params={"user_id": shown}, headers=stranger), 403)
        for unlike in (f"other/{sub}", f"ACME/{sub}", f"{shown}/", f" {shown}", f"acme/{shown}"):
            assert_refused(await api.get("/v1/memory", params={"user_id": unlike}), 403)


async def test_a_token_for_projects_reads_and_writes_within_them(parts: Parts) -> None:
    async with api_of(parts, headers={"x-authz-user-id": "acme/ann"}) as owner:
        ids = {name: await add_one(owner, f"My {name} note", project_id=name) for name in ("red", "blue", "green")}
        shared = await add_one(owner, "I like tea")
        of_two = claims(sub="ann", projects=["red", "blue"])
        async with api_of(parts, identity_mode="jwt", rules=RULES, headers=of_two) as api:
            for name in ("red", "blue"):
                listed = (await api.get(f"/v1/memory?project_id={name}")).json()["memories"]
                assert ids[name] in {one["id"] for one in listed}
                assert ids["green"] not in {one["id"] for one in listed}
                assert (await api.get(f"/v1/memory/{ids[name]}/history")).status_code == 200
            found = await api.post("/v1/memory/search", json={"query": "green note", "project_id": "red"})
            assert "green" not in found.text
            assert (await api.get(f"/v1/memory/{shared}")).status_code == 200
            for method in ("GET", "DELETE"):
                assert_refused(await api.request(method, f"/v1/memory/{ids['green']}"), 404, "no such memory")
            assert_refused(await api.patch(f"/v1/memory/{ids['green']}", json={"content": "x"}), 404)
            assert_refused(await api.delete(f"/v1/memory/{shared}"), 403)
            assert_refused(await api.patch(f"/v1/memory/{shared}", json={"content": "x"}), 403)
            assert (await api.delete(f"/v1/memory/{ids['blue']}")).status_code == 200
        assert (await owner.get(f"/v1/memory/{ids['green']}")).status_code == 200
        assert (await owner.get(f"/v1/memory/{shared}")).json()["content"] == "I like tea"


WITHOUT_A_BODY = {
    "GET": (
        "/v1/memory /v1/memory?project_id=green /v1/profile?project_id=green /v1/memory/stats /v1/memory/receipts/r1 "
        "/v1/memory/sessions /v1/sessions/s1 /v1/memory/messages /v1/memory/messages/export "
        "/v1/memory/conversations/c1/messages /v1/memory/opt-out"
    ),
    "DELETE": (
        "/v1/memory?user_id=ann /v1/memory?user_id=ann&project_id=green /v1/memory/turns/t1 /v1/sessions/s1 "
        "/v1/profile /v1/memory/opt-out"
    ),
    "PUT": "/v1/memory/opt-out",
}
FOREIGN_CALLS: list[tuple[str, str, dict[str, Any] | None]] = [
    *((method, path, None) for method, paths in WITHOUT_A_BODY.items() for path in paths.split()),
    ("POST", "/v1/memory/search", {"query": "x"}),
    ("POST", "/v1/memory/search", {"query": "x", "project_id": "green"}),
    ("POST", "/v1/memory", {"memories": [{"content": "x"}]}),
    ("POST", "/v1/memory", {"memories": [{"content": c, "project_id": p} for c, p in (("x", "red"), ("y", "green"))]}),
    ("POST", "/v1/memory/turns", {"session_id": "s", "at": 1.0, "messages": [{"role": "user", "content": "x"}]}),
    ("PUT", "/v1/profile", {"enabled": False}),
    ("POST", "/v1/memory/flush", {}),
    ("POST", "/v1/memory/conversations/c1/trim", {"keep_last": 0}),
]


async def test_what_goes_beyond_the_projects_of_a_token_is_403(parts: Parts) -> None:
    of_two = claims(sub="ann", projects=["red", "blue"])
    async with api_of(parts, identity_mode="jwt", rules=RULES, headers=of_two) as api:
        for method, path, body in FOREIGN_CALLS:
            assert_refused(await api.request(method, path, json=body), 403, "forbidden", "your token is for")
    assert await parts.opt_outs.since("acme/ann") is None


async def test_the_only_project_of_a_token_is_used_where_none_is_named(parts: Parts) -> None:
    async with api_of(parts, identity_mode="jwt", rules=RULES, headers=claims(sub="ann", projects="red")) as api:
        memory_id = await add_one(api)
        assert (await api.get(f"/v1/memory/{memory_id}")).json()["project_id"] == "red"
        assert (await api.delete("/v1/memory?user_id=ann")).json()["deleted"] == 1


# Programs


@pytest.mark.parametrize("mode", ["development", "header", "jwt"])
async def test_a_service_token_acts_for_the_user_it_names_and_an_unknown_one_is_401(parts: Parts, mode: str) -> None:
    async with api_of(parts, identity_mode=mode, rules=RULES, headers=with_token(IMPORTER)) as api:
        answer = await api.post("/v1/memory?user_id=ann", json={"memories": [{"content": "I like tea"}]})
        assert answer.status_code == 201
        assert (await api.get("/v1/memory/stats", headers=ANN)).json()["memories"]["active"] == 1
        assert (await api.get("/v1/memory/stats?user_id=bob")).json()["memories"]["active"] == 0
        assert_refused(await api.get("/v1/memory/stats"), 401, "?user_id=")
        assert_refused(await api.get("/v1/memory/stats?user_id=bob", headers=ANN), 403)
        assert_refused(await api.get("/v1/memory/stats?user_id=%20ann"), 400)
    vouched = [("x-authz-user-id", "ann"), ("x-memory-edge-secret", SECRET)]
    async with api_of(parts, identity_mode=mode, rules=RULES) as api:
        for tokens in ([STRANGER], [f"{IMPORTER}x"], ["mpt_"], [READER, IMPORTER]):
            headers = [("authorization", f"Bearer {token}") for token in tokens]
            assert_refused(await api.get("/v1/memory/stats", headers=headers + vouched), 401, "not known")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_scopes_and_users_bound_what_a_service_token_may(parts: Parts, scheme: str) -> None:
    token = {"authorization": f"{scheme} {READER}"}
    async with api_of(parts, identity_mode="header", rules=RULES, headers=token) as api:
        assert (await api.get("/v1/memory?user_id=ann")).status_code == 200
        assert (await api.post("/v1/memory/search?user_id=ann", json={"query": "x"})).status_code == 200
        assert_refused(await api.get("/v1/memory?user_id=bob"), 403, "not for that user")
        assert_refused(await api.post("/v1/memory?user_id=ann", json={"memories": []}), 403, "no scope write")
        assert_refused(await api.delete("/v1/memory?user_id=ann"), 403, "no scope write")
        assert_refused(await api.post("/v1/memory/flush?user_id=ann"), 403, "no scope write")


async def test_other_tokens_in_that_header_are_not_ours(parts: Parts) -> None:
    """Clients send the upstream's key everywhere."""
    async with api_of(parts, rules=RULES, headers=ANN | {"authorization": "Bearer sk-upstream"}) as api:
        assert (await api.get("/v1/memory/stats")).status_code == 200


async def test_calls_are_counted_by_the_name_of_the_token_and_never_with_it(parts: Parts) -> None:
    metrics = Metrics(CollectorRegistry())
    async with api_of(parts, identity_mode="header", rules=RULES, metrics=metrics) as api:
        calls: list[tuple[str, str]] = [(IMPORTER, "ann"), (READER, "ann"), (READER, "bob"), (STRANGER, "ann")]
        for token, user in calls:
            await api.get(f"/v1/memory/stats?user_id={user}", headers=with_token(token))
    expected = [("importer", "accepted"), ("reader", "accepted"), ("reader", "refused"), ("unknown", "refused")]
    found = counted(metrics.registry, "memproxy_service_token_calls_total", "token", "outcome")
    assert found == dict.fromkeys(expected, 1.0)


async def test_no_answer_repeats_a_token(parts: Parts) -> None:
    async with api_of(parts, identity_mode="header", rules=RULES) as api:
        for token in (READER, STRANGER):
            answer: httpx.Response = await api.delete("/v1/memory?user_id=ann", headers=with_token(token))
            assert token not in answer.text
