"""The MCP server with the SDK's own client: over HTTP, over standard input and output, and where it cannot load."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_parts import ANN, SECRET, api_of, claims
from library_parts import Parts
from mcp import Client, MCPError, StdioServerParameters
from mcp_calls import called, client, refused, serving
from project_members import let_in
from project_world import CLAIMS, project_world
from structlog.testing import capture_logs

from memory.api.callers import CallerRules
from memory.api.mcp import MemoryMcp
from memory.api.mcp_on_demand import PATHS, McpOnDemand
from memory.model import Change, ChangeKind
from memory.model.projects import ProjectRole
from memory.model.web_pages import TrustedPages
from memory.ports import MemoryFilter

ENVIRONMENT = {
    "PYTHONPATH": str(Path(__file__).parents[3]),  # the SDK passes on next to nothing
    "HTTP_PROXY": "http://127.0.0.1:9",  # must not see the edge's secret, nor a memory
}
MEMPROXY = str(Path(sys.executable).with_name("memproxy"))


@pytest.fixture
async def url(parts: Parts) -> AsyncIterator[str]:
    async with serving(parts) as url:
        yield url


@pytest.mark.parametrize("path", PATHS)
async def test_a_model_saves_finds_counts_and_forgets_for_its_own_user_alone(url: str, path: str) -> None:
    async with client(url, path, x_authz_user_id="ann") as ann, client(url, path, x_authz_user_id="bob") as bob:
        tools = (await ann.list_tools()).tools
        names = ("save", "search", "list", "delete", "projects", "stats")
        assert [tool.name for tool in tools] == [f"memory_{name}" for name in names]
        assert all(len(tool.description or "") > 50 for tool in tools)
        assert not any("$ref" in json.dumps(tool.input_schema) for tool in tools)  # to what is not sent along
        saved = await called(ann, "memory_save", content="User is allergic to penicillin")
        await called(ann, "memory_save", content="User went to Oslo", memory_type="episodic", project_id="trips")
        [best, *_] = (await called(ann, "memory_search", query="Which medicine am I allergic to?"))["memories"]
        assert (best["id"], best["content"]) == (saved["id"], "User is allergic to penicillin")
        assert set(best) == {"id", "content", "memory_type", "said_at", "score", "said_by"}
        assert best["said_by"] == "application"
        by_type = (await called(ann, "memory_stats"))["by_type"]
        assert (by_type["semantic"], by_type["episodic"]) == (1, 1)
        assert (await called(bob, "memory_search", query="allergic to penicillin"))["memories"] == []
        assert "no such memory" in await refused(bob, "memory_delete", memory_id=saved["id"])
        assert await called(ann, "memory_delete", memory_id=saved["id"]) == {"deleted": 1}
        assert "no such memory" in await refused(ann, "memory_delete", memory_id=saved["id"])
        assert (await called(ann, "memory_stats"))["active"] == 1


async def test_the_same_statement_is_saved_once_and_again_once_it_is_forgotten(url: str) -> None:
    async with client(url, x_authz_user_id="ann") as ann:
        texts = ("User likes tea", "User likes tea.", "user  likes TEA")
        first, *others = [(await called(ann, "memory_save", content=text))["id"] for text in texts]
        assert set(others) == {first}
        elsewhere = await called(ann, "memory_save", content=texts[0], project_id="kitchen")
        assert elsewhere["id"] != first
        await called(ann, "memory_delete", memory_id=first)
        assert (await called(ann, "memory_save", content=texts[0]))["id"] != first
        assert (await called(ann, "memory_stats"))["active"] == 2


async def test_all_memories_are_listed_page_by_page_and_those_of_one_attribute(parts: Parts, url: str) -> None:
    async with client(url, x_authz_user_id="ann") as ann:
        for number in range(5):
            await called(ann, "memory_save", content=f"User owns boat {number}")
        [record] = await parts.store.load(MemoryFilter("ann"), limit=1)
        home = replace(record.memory, id="home", content="I live in Leeds", attribute="home", source="conversation")
        await parts.store.apply("ann", [Change(ChangeKind.CREATE, home)], record.vector[None])
        seen, cursor = list[str](), ""
        for _ in range(3):
            page = await called(ann, "memory_list", limit=2, cursor=cursor)
            seen += [one["content"] for one in page["memories"]]
            cursor = page["next_cursor"]
        assert cursor == ""
        assert sorted(seen) == ["I live in Leeds", *(f"User owns boat {number}" for number in range(5))]
        [found] = (await called(ann, "memory_list", attribute="home"))["memories"]
        assert (found["content"], found["attribute"], "said_by" in found) == ("I live in Leeds", "home", False)
        assert (await called(ann, "memory_list", attribute="diet"))["memories"] == []


async def test_wrong_arguments_are_told_to_the_model_and_nobody_is_served_without_a_name(url: str) -> None:
    async with client(url, x_authz_user_id="ann") as ann, client(url) as nobody:
        for number in range(7):
            await called(ann, "memory_save", content=f"User owns boat {number}", project_id=None)
        for limit, count in (("5", 5), (5.0, 5), (None, 7)):  # as models give them
            assert len((await called(ann, "memory_search", query="boats", limit=limit))["memories"]) == count
        for limit in ("many", 5_000):
            assert "$.limit" in await refused(ann, "memory_search", query="boats", limit=limit)
        assert "query" in await refused(ann, "memory_search")
        assert "query" in await refused(ann, "memory_search", query=None)
        assert "unknown field `user_id`" in await refused(ann, "memory_search", query="tea", user_id="bob")
        assert "memory_type must be one of" in await refused(ann, "memory_save", content="x" * 9, memory_type="vague")
        with pytest.raises(MCPError, match="unknown tool: memory_everything"):
            await ann.call_tool("memory_everything", {})
        assert "no user" in await refused(nobody, "memory_stats")


LISTING = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'


async def listed(url: str, *headers: tuple[str, str], path: str = PATHS[0]) -> int:
    """The status of `tools/list`, which says nothing of a user."""
    async with httpx.AsyncClient(base_url=url) as http:
        del http.headers["accept"]
        sent = [("content-type", "application/json"), *headers]
        return (await http.post(path, content=LISTING, headers=sent)).status_code


async def test_whoever_takes_json_is_answered_also_without_saying_so(url: str) -> None:
    assert await listed(url) == 200
    assert await listed(url, ("accept", "text/event-stream"), ("accept", "application/json")) == 200
    for usual in ("application/json", "*/*", "text/event-stream, application/json;q=0.5", "application/*", ""):
        assert await listed(url, ("accept", usual)) == 200
    assert await listed(url, ("accept", "text/html")) == 406


@pytest.mark.parametrize("identity", ["development", "header", "jwt"])
async def test_a_page_of_another_host_gets_no_answer_of_the_protocol(parts: Parts, identity: str) -> None:
    rules = CallerRules(pages=TrustedPages(("https://app.example",)))
    async with serving(parts, identity, SECRET, rules) as url:
        for origin in ("http://pages.example", "null", "https://app.example.pages.example"):
            for path in (*PATHS, f"{PATHS[0]}/", f"/{PATHS[0]}"):
                assert await listed(url, ("origin", origin), path=path) == 403
        for origin in ("https://app.example", "http://localhost:3000"):
            assert await listed(url, ("origin", origin)) == 200
        assert await listed(url) == 200


@pytest.mark.parametrize("identity", ["header", "jwt"])
async def test_a_page_of_the_host_itself_is_served_where_an_edge_identifies_users(parts: Parts, identity: str) -> None:
    async with serving(parts, identity, SECRET) as url:
        host, own = ("host", "chat.example:8443"), ("origin", "https://chat.example:8443")
        assert await listed(url, host, own) == 200
        assert await listed(url, host, own, ("sec-fetch-site", "cross-site")) == 403
        for other in ("ftp://chat.example:8443", "https://chat.example"):
            assert await listed(url, host, ("origin", other)) == 403


async def test_outside_development_only_the_edge_says_who_calls(parts: Parts) -> None:
    async with serving(parts, "header", "edge-secret") as url:
        async with client(url, x_authz_user_id="ann") as direct:
            assert "through the proxy" in await refused(direct, "memory_stats")
        async with client(url, x_authz_user_id="ann", x_memory_edge_secret="edge-secret") as ann:
            assert (await called(ann, "memory_stats"))["active"] == 0


LAUNCH = {"content": "The kestrel launch is on Friday", "project_id": "apollo", "visibility": "members"}


async def found_in_apollo(connected: Client) -> list[tuple[str, str | None]]:
    found = await called(connected, "memory_search", query="When is the kestrel launch?", project_id="apollo")
    return [(memory["content"], memory.get("shared_by")) for memory in found["memories"]]


async def test_a_project_is_read_and_written_by_role(tmp_path: Path) -> None:
    async with project_world(tmp_path) as world, serving(world) as url:
        membership = world.library.projects.membership
        await membership.create("olga", "apollo")
        for user, role in (("ed", ProjectRole.EDITOR), ("vic", ProjectRole.VIEWER)):
            await let_in(membership, "olga", "apollo", user, role)
        eds, vics, xenas = (client(url, x_authz_user_id=user) for user in ("ed", "vic", "xena"))
        async with eds as ed, vics as vic, xenas as xena:
            shared = await called(ed, "memory_save", **LAUNCH)
            assert await called(vic, "memory_projects") == {"projects": [{"project_id": "apollo", "role": "viewer"}]}
            assert await called(xena, "memory_projects") == {"projects": []}
            assert await found_in_apollo(vic) == [(LAUNCH["content"], "ed")]
            assert await found_in_apollo(ed) == [(LAUNCH["content"], None)]
            assert await found_in_apollo(xena) == []
            assert "role" in await refused(vic, "memory_save", **LAUNCH)
            assert "no such project" in await refused(xena, "memory_save", **LAUNCH)
            assert "role" in await refused(vic, "memory_delete", memory_id=shared["id"])
            assert "no such memory" in await refused(xena, "memory_delete", memory_id=shared["id"])
            await called(vic, "memory_save", content="User prepares the kestrel launch", project_id="apollo")
            assert await found_in_apollo(ed) == [(LAUNCH["content"], None)]  # the viewer's own stays theirs
            await membership.remove("olga", "apollo", "vic")
            assert await found_in_apollo(vic) == [("User prepares the kestrel launch", None)]
            assert await called(ed, "memory_delete", memory_id=shared["id"]) == {"deleted": 1}


async def test_a_token_of_some_projects_uses_and_sees_no_other(tmp_path: Path) -> None:
    rules = CallerRules(CLAIMS)
    async with project_world(tmp_path, has_tenants=True) as world, serving(world, "jwt", SECRET, rules) as url:
        for project in ("apollo", "borealis"):
            await world.library.projects.membership.create("acme/olga", project)
        await let_in(world.library.projects.membership, "acme/olga", "apollo", "acme/ed", ProjectRole.EDITOR)
        async with (
            client(url, **claims(sub="olga", projects=["borealis"])) as bound,
            client(url, **claims(sub="olga", projects=["apollo"])) as olga,
            client(url, **claims(sub="ed", projects=["apollo"])) as ed,
        ):
            await called(ed, "memory_save", **LAUNCH)
            assert await found_in_apollo(olga) == [(LAUNCH["content"], "ed")]
            projects = (await called(bound, "memory_projects"))["projects"]
            assert [project["project_id"] for project in projects] == ["borealis"]
            assert "other projects" in await refused(bound, "memory_save", **LAUNCH)
            assert "other projects" in await refused(bound, "memory_search", query="kestrel", project_id="apollo")


async def test_the_same_tools_work_over_standard_input_and_output(url: str) -> None:
    command = StdioServerParameters(command=MEMPROXY, args=["mcp", "--api", url, "--user", "jürgen"], env=ENVIRONMENT)
    async with Client(command) as ann:
        saved = await called(ann, "memory_save", content="User is allergic to penicillin")
        found = await called(ann, "memory_search", query="Which medicine am I allergic to?")
        assert [memory["id"] for memory in found["memories"]] == [saved["id"]]
    async with client(f"{url}", f"{PATHS[0]}?user_id=j%C3%BCrgen") as again:
        assert (await called(again, "memory_stats"))["active"] == 1


async def bridged(url: str, *lines: bytes) -> list[dict[str, Any]]:
    """What the bridge prints until it ends, which it does by itself."""
    process = await asyncio.create_subprocess_exec(
        *(MEMPROXY, "mcp", "--api", url, "--user", "ann"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    shown, _ = await process.communicate(b"".join(line + b"\n" for line in lines))
    assert process.returncode == 0
    return [json.loads(line) for line in shown.splitlines()]


async def test_standard_input_that_ends_ends_it_and_each_message_has_one_answer(url: str) -> None:
    assert await bridged(url) == []
    listing = b'{"jsonrpc": "2.0", "id": "a\\u0000b", "method": "tools/list"}'
    wrong = [b"nonsense", b"[]", b"[" * 10_000, b'{"id": 7}', b'{"jsonrpc": "2.0", "method": "notifications/any"}']
    answers = await bridged(url, listing, *wrong, b"")
    codes = {(one["id"], one.get("error", {}).get("code")) for one in answers}
    assert codes == {("a\0b", None), (None, -32_700), (None, -32_600), (7, -32_602)}
    assert len(answers) == 5


async def test_an_api_that_is_down_and_what_answers_in_its_place_are_one_error_that_says_so() -> None:
    asked = [b'{"jsonrpc": "2.0", "id": 1, "method": "initialize"}', b'{"jsonrpc": "2.0", "method": "notifications/x"}']
    [answer] = await bridged("http://127.0.0.1:1", *asked)
    assert (answer["id"], answer["error"]["code"]) == (1, -32_603)
    assert "127.0.0.1:1; is it running? Name another with --api" in answer["error"]["message"]

    async def other(_: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        to.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>")
        to.close()

    async with await asyncio.start_server(other, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        [answer] = await bridged(f"http://127.0.0.1:{port}", LISTING)
    assert "what answers there is not it (HTTP 200)" in answer["error"]["message"]


async def test_a_client_that_closes_in_mid_call_ends_it() -> None:
    called, is_closed = asyncio.Event(), asyncio.Event()

    async def slow(_: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        called.set()
        await is_closed.wait()
        to.write(b'HTTP/1.1 200 OK\r\ncontent-length: 36\r\n\r\n{"jsonrpc":"2.0","id":1,"result":{}}')
        to.close()

    async with await asyncio.start_server(slow, "127.0.0.1", 0) as server:
        command = (MEMPROXY, "mcp", "--user", "ann", "--api", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        reading, writing = os.pipe()
        pipes = {"stdin": subprocess.PIPE, "stdout": writing, "stderr": subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(*command, **pipes)
        os.close(writing)
        assert process.stdin is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}\n')
        await called.wait()
        os.close(reading)
        process.stdin.close()
        is_closed.set()
        _, said = await process.communicate()
    assert (process.returncode, said) == (0, b"")


async def test_a_model_is_refused_while_the_user_has_opted_out(url: str, parts: Parts) -> None:
    async with client(url, x_authz_user_id="ann") as ann:
        saved = await called(ann, "memory_save", content="User is allergic to penicillin")
        await parts.library.opt_outs.opt_out("ann")
        assert "opted out" in await refused(ann, "memory_save", content="User likes tea")
        assert "opted out" in await refused(ann, "memory_search", query="Which medicine am I allergic to?")
        shown = await called(ann, "memory_stats")
        assert (shown["active"], shown["opted_out"]) == (1, True)
        assert await called(ann, "memory_delete", memory_id=saved["id"]) == {"deleted": 1}


def load_broken() -> MemoryMcp:
    import memory.api.no_such_module  # type: ignore[import-not-found]  # as an SDK that is not there

    raise AssertionError(memory.api.no_such_module)


async def test_without_its_sdk_mcp_is_503_and_the_rest_goes_on(parts: Parts) -> None:
    mcp = McpOnDemand(load_broken)
    async with mcp.running(), api_of(parts, routes=mcp.routes, headers=ANN) as api:
        with capture_logs() as logs:
            for path in PATHS * 2:
                answer = await api.post(path, json={})
                assert answer.status_code == 503
                assert answer.json()["error"]["code"] == "unavailable"
                assert (await api.get("/v1/memory/stats")).status_code == 200
    assert [line["log_level"] for line in logs] == ["error"]
    assert logs[0]["module"] == "memory.api.no_such_module"
