"""The web pages and MCP through the real product: at the API's port and the proxy's own, with the chats' identity."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_calls import called, client
from pages import MY_PAGE, chromium, press, watched
from playwright.sync_api import Browser, expect
from product import Product
from upstream import RecordingUpstream

SEEN_MS_MAX = 60_000  # the page looks every five seconds, and a busy machine may stand still for some


@pytest.fixture
def browser() -> Iterator[Browser]:
    """For one test: while it is open, no other test can run a loop."""
    if shutil.which("chromium") is None:
        pytest.skip("NO CHROMIUM ON THE PATH: THE WEB PAGE IS NOT TESTED (on Debian: apt install chromium)")
    with chromium() as found:
        yield found


def test_a_user_sees_and_forgets_by_the_proxy_what_a_chat_taught(shared_product: Product, browser: Browser) -> None:
    product, user = shared_product, "page-reader"
    product.chat("My dog is called Rex", user, session_id="s1")
    assert product.flush(user) == {"pending": 0, "failed": 0}
    product.chat("What is the name of my dog?", user, session_id="s2")
    with watched(browser, product.url + MY_PAGE, user=user) as page:
        rex = page.get_by_role("article").filter(has_text="Rex")
        expect(rex).to_be_visible(timeout=SEEN_MS_MAX)
        rex.get_by_role("button", name="Details").click()
        expect(rex.locator("blockquote")).to_contain_text("Rex", timeout=SEEN_MS_MAX)
        expect(rex).to_contain_text("What is the name of my dog?")
        rex.get_by_role("button", name="Forget").click()
        press(page, "Forget it")
        expect(page.get_by_text("The memory was forgotten.")).to_be_visible(timeout=SEEN_MS_MAX)
    left = httpx.get(f"{product.url}/v1/memory", params={"user_id": user}, headers={"x-authz-user-id": user}).json()
    assert not [one for one in left["memories"] if "Rex" in one["content"]]


def test_the_proxy_refuses_a_forged_change_and_serves_the_operator_s_calls(shared_product: Product) -> None:
    url, headers = f"{shared_product.url}/v1/memory", {"x-authz-user-id": "forged"}
    forged = httpx.delete(f"{url}?user_id=forged", headers=headers | {"origin": "http://localhost:3000"})
    assert (forged.status_code, forged.json()["error"]["code"]) == (403, "forbidden")
    assert httpx.delete(f"{url}?user_id=forged", headers=headers).status_code == 200
    other_call = httpx.get(f"{url}/mcp/history", headers=headers, timeout=30)
    assert other_call.status_code == 404, "the names of other calls stay theirs"
    parts = httpx.get(f"{url}/operator/health").json()["parts"]
    assert {one["part"]: one["ok"] for one in parts} == dict.fromkeys(
        ("store", "turn_log", "embedder", "learning", "envoy", "filter", "worker", "upstream"), True
    )


async def test_a_chat_is_told_what_tools_save_and_keep(shared_product: Product, upstream: RecordingUpstream) -> None:
    user = "agent of the lighthouse"
    async with (
        create_mcp_http_client(headers={"x-authz-user-id": user}) as http,
        Client(streamable_http_client(f"{shared_product.url}/v1/memory/mcp", http_client=http)) as agent,
    ):
        saved = await agent.call_tool("memory_save", {"content": "User's lighthouse is called Old Barnaby"})
        answer = shared_product.ask("What is my lighthouse called?", user)
        assert answer.headers["x-memory-status"] == "used"
        assert b"Old Barnaby" in upstream.last_chat().body
        gone = await agent.call_tool("memory_delete", {"memory_id": saved.structured_content["id"]})
        assert not gone.is_error
        shared_product.ask("What is my lighthouse called, again?", user)
        assert b"Old Barnaby" not in upstream.last_chat().body


TOLD = (
    "My name is Ezra Holt.",
    "I live in Saltmere.",
    "I repair clocks for a living.",
    "I'm allergic to celery.",
    "I have twin boys.",
)
ASKED = (
    "What do you know about me?",
    "Who am I?",
    "user preferences",
    "Was weißt du über mich?",
    "¿Qué sabes de mí?",
    "你对我了解多少？",
)


async def test_an_agent_that_asks_who_the_user_is_gets_what_chats_told(shared_product: Product) -> None:
    for number, statement in enumerate(TOLD):
        shared_product.chat(statement, "ezra", session_id=f"told-{number}")
    assert shared_product.flush("ezra") == {"pending": 0, "failed": 0}
    complete = []
    async with client(shared_product.api, x_authz_user_id="ezra") as agent:
        for query in ASKED:
            found = (await called(agent, "memory_search", query=query, limit=10))["memories"]
            missing = set(TOLD) - {memory["content"] for memory in found}
            complete += [query] if not missing else []
    assert len(complete) >= 5, complete
