"""What a product does with pages of a browser: Envoy hands their headers on, and all parts trust the same pages."""

from __future__ import annotations

import httpx
import pytest
from product import TRUSTED_PAGE, Product, in_time
from upstream import RecordingUpstream

EVIL = "https://evil.example"
CHATS = ["/v1/chat/completions", "/v1/responses", "/v1/messages"]
BODY = {
    "model": "m",
    "memory_context": {"user_id": "visitor"},
    "messages": [{"role": "user", "content": "Where is my boat?"}],
    "input": "Where is my boat?",
}


@pytest.mark.parametrize("path", CHATS)
@pytest.mark.parametrize(
    ("headers", "has_memory"),
    [
        ({}, True),
        ({"origin": TRUSTED_PAGE, "sec-fetch-site": "cross-site"}, True),
        ({"origin": "http://localhost:3000"}, True),
        ({"host": "app.example:8080"}, True),
        *(({"origin": origin}, False) for origin in (EVIL, "null", f"{TRUSTED_PAGE}:8443", f"{TRUSTED_PAGE},{EVIL}")),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"host": "evil.example"}, False),
        ({"host": "evil.example", "x-forwarded-host": "localhost", "forwarded": "host=localhost"}, False),
        ({"origin": EVIL, "x-forwarded-host": "evil.example", "x-forwarded-for": "127.0.0.1"}, False),
    ],
)
def test_a_chat_has_memory_where_its_page_is_trusted(
    shared_product: Product, upstream: RecordingUpstream, path: str, headers: dict[str, str], *, has_memory: bool
) -> None:
    answer = in_time(lambda: httpx.post(f"{shared_product.url}{path}", json=BODY, headers=headers, timeout=30))
    assert answer.status_code == 200
    assert (answer.headers["x-memory-status"] != "disabled") == has_memory


@pytest.mark.parametrize("path", CHATS)
@pytest.mark.parametrize("origin", [TRUSTED_PAGE, "http://127.0.0.1:3000", EVIL])
def test_only_trusted_pages_ask(shared_product: Product, upstream: RecordingUpstream, path: str, origin: str) -> None:
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type, authorization"}
    answer = httpx.options(f"{shared_product.url}{path}", headers={"origin": origin, **asked}, timeout=30)
    allowed = answer.headers.get("access-control-allow-origin")
    assert allowed == (None if origin == EVIL else origin)
    assert "access-control-allow-credentials" not in answer.headers
    if origin != EVIL:
        assert (answer.status_code, answer.headers["access-control-allow-headers"]) == (200, "*, authorization")


@pytest.mark.parametrize("origin", [TRUSTED_PAGE, "http://127.0.0.1:3000", EVIL, "null"])
def test_the_api_trusts_the_same_pages(shared_product: Product, origin: str) -> None:
    status = 403 if origin in (EVIL, "null") else 200
    mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for base in (shared_product.url, shared_product.api):
        of_visitor = {"params": {"user_id": "visitor"}, "timeout": 30}
        headers = {"origin": origin, "accept": "application/json, text/event-stream"}
        assert httpx.get(f"{base}/v1/memory", headers=headers, **of_visitor).status_code == status
        assert httpx.post(f"{base}/v1/memory/mcp", json=mcp, headers=headers, timeout=30).status_code == status
