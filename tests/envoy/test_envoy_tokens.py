"""Users identified by tokens, through a real Envoy: what reaches recall, the upstream and the client."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from filter_stack import NOTE, FilterStack, running_stack
from msgspec.structs import replace
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from token_issuer import AUDIENCE, DROPPED, ISSUER, TokenIssuer
from upstream import RecordingUpstream

from memory.model import Scope
from memory.settings import IdentitySettings, JwtSettings

OURS = TokenIssuer()
INLINE = JwtSettings(issuer=ISSUER, audiences=(AUDIENCE,), jwks=OURS.key_set())
REJECTING = {"identity": IdentitySettings(on_mismatch="reject")}
MALLORY = {"sub": "mallory", "org": {"id": "acme"}, "projects": ["red", "blue"]}
pytestmark = pytest.mark.asyncio(loop_scope="session")


def question(**context: str) -> bytes:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "What is my cat called?"}]}
    return json.dumps(body | ({"memory_context": context} if context else {})).encode()


def bearing(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_stack(shared_upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    """Without tenants and projects; requests that contradict their token are passed on."""
    async with running_stack(shared_upstream.url, identity="jwt", jwt=INLINE) as running:
        yield running


async def test_the_token_says_who_asks_and_who_is_learnt(stack: FilterStack, upstream: RecordingUpstream) -> None:
    for token in (OURS.token(sub="ada"), OURS.rsa_token(sub="ada")):
        answer = await stack.chat(question(), **bearing(token))
        assert answer.headers["x-memory-status"] == "used"
        assert NOTE in upstream.last_chat().system_text()
    assert [scope for scope, _ in stack.recall.asked] == [Scope("ada")] * 2
    assert len(await stack.turns("ada", until=2)) == 2


async def test_the_upstream_gets_the_token_and_nothing_of_ours(stack: FilterStack, upstream: RecordingUpstream) -> None:
    token = OURS.token(sub="ada")
    forged = {"x-authz-user-id": "eve", "x-memory-token-claims": "e30", "x-memory-edge-secret": "x"}
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/completions", "/v1/models"):
        async with stack.client() as client:
            await client.post(path, content=question(), headers=bearing(token) | forged | {"x-own": "kept"})
        received = upstream.received[-1].headers
        assert received["authorization"] == f"Bearer {token}"
        assert received["x-own"] == "kept"
        assert not forged.keys() & received.keys(), path


async def test_without_a_valid_token_a_chat_goes_on_without_memory(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    for headers in ({}, bearing("sk-an-upstream-key"), bearing(OURS.token(sub="ada", exp=1))):
        answer = await stack.chat(question(), **headers)
        assert (answer.status_code, answer.headers.get("x-memory-status")) == (200, None)
        assert upstream.last_chat().headers.get("authorization") == headers.get("authorization")
        assert upstream.last_chat().body == question()
    assert stack.recall.asked == []


@pytest.mark.parametrize("user", [" ada", "ada ", "a\rda", "ada\r\nx-authz-user-id: eve", "a\x00da", "x" * 257])
async def test_a_user_that_no_id_can_be_has_no_memory_and_breaks_no_chat(stack: FilterStack, user: str) -> None:
    """Envoy would answer 503 if it had to write such a claim into a header of its own."""
    answer = await stack.chat(question(), **bearing(OURS.token(sub=user)))
    assert answer.status_code == 200
    assert stack.recall.asked == []
    assert stack.count("memproxy_identity_refused_total", reason="invalid_user_claim") == 1


async def test_a_body_that_names_another_user_is_passed_on_without_memory_and_counted(
    stack: FilterStack, upstream: RecordingUpstream
) -> None:
    answer = await stack.chat(question(user_id="eve"), **bearing(OURS.token(sub="ada")))
    assert (answer.status_code, answer.headers["x-memory-status"]) == (200, "disabled")
    assert b"memory_context" not in upstream.last_chat().body
    assert stack.recall.asked == []
    assert stack.count("memproxy_identity_refused_total", reason="disagreement") == 1
    assert await stack.turns("eve") == []


async def test_tenants_and_projects_bound_what_is_used(upstream: RecordingUpstream) -> None:
    """And a contradiction is answered with 403 where the settings say so, in place of the upstream."""
    jwt = replace(INLINE, tenant_claim="org.id", project_claim="projects")
    async with running_stack(upstream.url, identity="jwt", jwt=jwt, memory=REJECTING) as stack:
        mine = bearing(OURS.token(**MALLORY))
        assert (await stack.chat(question(project_id="red", user_id="mallory"), **mine)).status_code == 200
        one = bearing(OURS.token(**MALLORY | {"projects": "red", "org": {"id": "a/c%me"}}))
        assert (await stack.chat(question(session_id="s"), **one)).status_code == 200
        scopes = [scope for scope, _ in stack.recall.asked]
        assert scopes == [Scope("acme/mallory", "red"), Scope("a%2Fc%25me/mallory", "red", "s")]
        stack.begin()
        before = len(upstream.received)
        for context in ({"project_id": "green"}, {"user_id": "eve", "project_id": "red"}, {"user_id": "acme/mallory"}):
            answer = await stack.chat(question(**context), **mine)
            assert answer.status_code == 403, context
            assert answer.headers["content-type"] == "application/json"
            assert answer.json()["error"]["code"] == "identity_mismatch"
        assert (len(upstream.received), stack.recall.asked) == (before, [])
        assert stack.count("memproxy_identity_refused_total", reason="disagreement") == 2
        assert stack.count("memproxy_identity_refused_total", reason="foreign_project") == 1
        assert (await stack.chat(question(), **mine)).status_code == 200, "who names no project contradicts nothing"
        assert stack.count("memproxy_identity_refused_total", reason="project_not_named") == 1
        for lacking in ("sub", "org", "projects"):
            answer = await stack.chat(question(project_id="red"), **bearing(OURS.token(**MALLORY | {lacking: DROPPED})))
            assert answer.status_code == 200, "a token without a claim contradicts nothing"
        assert (await stack.chat(question(user_id="eve"))).status_code == 200, "nor does nobody"
        assert stack.recall.asked == []


async def test_in_mode_header_a_contradiction_is_rejected_likewise(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, identity="header", memory=REJECTING) as stack:
        refused = await stack.chat(question(user_id="eve"), **{"x-authz-user-id": "ada"})
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")
        assert (await stack.chat(question(user_id="ada"), **{"x-authz-user-id": "ada"})).status_code == 200
        assert await stack.turns("eve") == []


async def test_where_tokens_are_required_chats_get_401_and_other_paths_pass(upstream: RecordingUpstream) -> None:
    jwt = replace(INLINE, required=True, forward=False, token_header="x-user-token")
    async with running_stack(upstream.url, identity="jwt", jwt=jwt) as stack, stack.client() as client:
        before = len(upstream.received)
        for headers in ({}, {"x-user-token": OURS.token(sub="ada", exp=1)}, bearing(OURS.token(sub="ada"))):
            for path in ("/v1/chat/completions", "/v1/responses"):
                assert (await client.post(path, content=question(), headers=headers)).status_code == 401
        assert len(upstream.received) == before
        for path in ("/v1/completions", "/v1/embeddings", "/v1/models"):
            assert (await client.post(path, content=b"{}")).status_code == 200, path
        headers = {"x-user-token": OURS.token(sub="ada"), "authorization": "Bearer sk-1"}
        assert (await stack.chat(question(), **headers)).headers["x-memory-status"] == "used"
        received = upstream.last_chat().headers
        assert ("x-user-token" in received, received["authorization"]) == (False, "Bearer sk-1")


class KeyServer:
    """Publishes a key set, or fails."""

    def __init__(self) -> None:
        self.status, self.asked = 200, 0

    async def answer(self, _: Request) -> Response:
        self.asked += 1
        return JSONResponse(json.loads(OURS.key_set()), status_code=self.status)


@pytest.mark.full("keys are fetched again and again")
async def test_keys_are_fetched_kept_over_an_outage_and_awaited_by_no_chat(upstream: RecordingUpstream) -> None:
    keys = KeyServer()
    keys.status = 503
    with served(Starlette(routes=[Route("/keys.json", keys.answer)])) as port:
        jwt = JwtSettings(issuer=ISSUER, audiences=(AUDIENCE,), jwks_url=f"http://127.0.0.1:{port}/keys.json")
        often = (b'cache_duration": "300s"', b'cache_duration": "1s"')
        async with running_stack(upstream.url, identity="jwt", jwt=jwt, rewrite=often) as stack:
            mine = bearing(OURS.token(sub="ada"))
            answer = await stack.chat(question(), **mine)
            assert (answer.status_code, answer.headers.get("x-memory-status")) == (200, None)
            assert keys.asked > 0
            keys.status = 200
            async with asyncio.timeout(60):
                while (await stack.chat(question(), **mine)).headers.get("x-memory-status") != "used":
                    await asyncio.sleep(0.1)
            await fetched_again(keys, 2)
            keys.status = 503
            await fetched_again(keys, 2)
            answer = await stack.chat(question(), **mine)
            assert answer.headers.get("x-memory-status") == "used", "the last good keys stay"


@pytest.mark.full("a stack of its own")
async def test_required_tokens_and_an_issuer_that_is_down_are_401_and_no_crash(upstream: RecordingUpstream) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    jwt = JwtSettings(issuer=ISSUER, jwks_url=f"http://127.0.0.1:{port}/keys", required=True)
    async with running_stack(upstream.url, identity="jwt", jwt=jwt) as stack:
        answer = await stack.chat(question(), **bearing(OURS.token(sub="ada")))
        assert answer.status_code == 401
        async with stack.client() as client:
            assert (await client.get("/v1/models")).status_code == 200


async def fetched_again(keys: KeyServer, times: int) -> None:
    until = keys.asked + times
    async with asyncio.timeout(60):
        while keys.asked < until:
            await asyncio.sleep(0.1)


async def test_memory_calls_through_the_proxy_carry_the_verified_claims_only(upstream: RecordingUpstream) -> None:
    """The recording upstream stands where the API would."""
    async with (
        running_stack(upstream.url, identity="jwt", jwt=INLINE, api_port=upstream.port) as stack,
        stack.client() as client,
    ):
        forged = {"x-authz-user-id": "eve", "x-memory-token-claims": "e30"}
        await client.get("/v1/memory/stats", headers=forged | bearing(OURS.token(sub="ada")))
        received = upstream.received[-1].headers
        payload = received["x-memory-token-claims"]
        assert payload == received["authorization"].split(".")[1]
        assert "x-authz-user-id" not in received
        await client.get("/v1/memory/stats", headers=forged | bearing("mpt_a-service-token"))
        received = upstream.received[-1].headers
        assert not forged.keys() & received.keys()
        assert received["authorization"] == "Bearer mpt_a-service-token"
