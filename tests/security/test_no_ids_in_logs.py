"""Logs name routes: no path, no query and no id of a user, a session or a memory."""

from __future__ import annotations

import re
from urllib.parse import quote

import httpx
from product import Product, eventually
from upstream import RecordingUpstream

ACCESS = re.compile(r"\baccess\b.*\bmemory\b")
USER, SESSION, MEMORY = "Zerlina von Quast", "session-of-zerlina", "memory-of-zerlina"
CALLS = [
    ("GET", f"/v1/memory/{MEMORY}"),
    ("DELETE", f"/v1/memory/{MEMORY}"),
    ("GET", f"/v1/memory/{MEMORY}/history"),
    ("GET", f"/v1/memory/sessions/{SESSION}"),
    ("GET", f"/v1/memory/conversations/{SESSION}/messages"),
    ("GET", f"/v1/memory/projects/{SESSION}/members/{quote(USER)}"),
    ("GET", "/v1/memory/erasures/erasure-of-zerlina"),
    ("PATCH", f"/v1/memory/%ff/{MEMORY}"),
]


def test_calls_and_chats_leave_no_id_in_any_log(shared_product: Product, upstream: RecordingUpstream) -> None:
    product = shared_product
    before = len(ACCESS.findall(product.log()))
    for method, path in CALLS:
        for base in (product.url, product.api):
            httpx.request(method, base + path, params={"user_id": USER}, headers={"x-authz-user-id": quote(USER)})
            httpx.request(method, base + path, params={"user_id": USER})
    product.chat("My boat is called Gwendolyn.", USER, session_id=SESSION)
    eventually(lambda: len(ACCESS.findall(product.log())) >= before + 2 * len(CALLS))
    log = product.log().casefold()
    assert not [word for word in ("zerlina", "gwendolyn", "quast") if word in log]
