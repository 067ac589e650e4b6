"""Opting out through the whole product: by user, header and route; shadow mode and holdouts in real chats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from product import Product, eventually, in_time, running_product
from upstream import RecordingUpstream

from memory.settings import Settings

FACT = "My kayak is stored at the boathouse in Dorset."
QUESTION = "Where is my kayak stored?"


def sent(upstream: RecordingUpstream) -> str:
    return upstream.last_chat().body.decode()


def chat(product: Product, text: str, user: str, session: str, **headers: str) -> httpx.Response:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": text}],
        "memory_context": {"user_id": user, "session_id": session},
    }
    answer = httpx.post(f"{product.url}/v1/chat/completions", json=body, headers=headers, timeout=30)
    assert answer.status_code == 200
    return answer


def asked(product: Product, user: str, session: str, **headers: str) -> str:
    """The status of the question's reply."""
    answer = in_time(lambda: chat(product, QUESTION, user, session, **headers))
    return answer.headers["x-memory-status"]


def receipt(product: Product, user: str, receipt_id: str) -> dict[str, Any]:
    def got() -> Any:
        url = f"{product.api}/v1/memory/receipts/{receipt_id}"
        found = httpx.get(url, params={"user_id": user}, timeout=10)
        return found.json() if found.status_code == 200 else None

    found: dict[str, Any] = eventually(got)
    return found


def test_a_user_opts_out_and_in_again(shared_product: Product, upstream: RecordingUpstream) -> None:
    product, user = shared_product, {"user_id": "opting-out"}
    chat(product, FACT, "opting-out", "s1")
    product.flush("opting-out")
    assert asked(product, "opting-out", "s2") == "used"
    switch = f"{product.url}/v1/memory/opt-out"  # under the proxy's port, like all of the API
    assert httpx.put(switch, params=user, timeout=30).json()["opted_out"] is True
    assert asked(product, "opting-out", "s3") == "disabled"
    assert "Dorset" not in sent(upstream)
    chat(product, "My sister is called Ida.", "opting-out", "s4")
    product.flush("opting-out")
    assert httpx.delete(switch, params=user, timeout=30).json()["opted_out"] is False
    assert asked(product, "opting-out", "s5") == "used"
    chat(product, "My brother is called Max.", "opting-out", "s6")
    product.flush("opting-out")
    memories = " ".join(product.memories("opting-out"))
    assert ("Dorset" in memories, "Ida" in memories, "Max" in memories) == (True, False, True)


def test_a_header_switches_memory_off_for_one_request(shared_product: Product, upstream: RecordingUpstream) -> None:
    product = shared_product
    chat(product, FACT, "header-off", "s1")
    product.flush("header-off")
    off = chat(product, QUESTION + " My sister is called Ida.", "header-off", "s2", **{"X-Memory": "Off"})
    assert off.headers["x-memory-status"] == "disabled"
    last = upstream.last_chat()
    assert "x-memory" not in last.headers
    assert b"memory_context" not in last.body
    assert b"Dorset" not in last.body
    assert asked(product, "header-off", "s3", **{"x-memory": "on"}) == "used"
    product.flush("header-off")
    assert "Ida" not in " ".join(product.memories("header-off"))


@pytest.fixture(scope="module")
def observing(
    tmp_path_factory: pytest.TempPathFactory, shared_upstream: RecordingUpstream
) -> Iterator[tuple[Product, Path]]:
    """A product in shadow mode, with a route without memory."""
    folder = tmp_path_factory.mktemp("shadow")
    (folder / "c.yaml").write_text("memory: {shadow: {enabled: true}, off_routes: [guests.example.com/]}")
    with running_product(folder / "data", upstream=shared_upstream.url, config=folder / "c.yaml") as product:
        yield product, folder / "data"


@pytest.mark.slow("starts the product")
def test_in_shadow_mode_chats_are_searched_and_learnt_and_leave_as_they_came(
    observing: tuple[Product, Path], upstream: RecordingUpstream
) -> None:
    product, _ = observing
    chat(product, FACT, "ann", "s1")
    product.flush("ann")
    assert "Dorset" in " ".join(product.memories("ann"))
    answer = in_time(lambda: chat(product, QUESTION, "ann", "s2"))
    assert (answer.headers["x-memory-status"], answer.headers.get("x-memory-count", "0")) == ("disabled", "0")
    assert json.loads(sent(upstream)) == {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    found = receipt(product, "ann", answer.headers["x-memory-receipt"])
    assert found["signals"]["withheld"] == "shadow"
    assert "withheld" in [candidate["verdict"] for candidate in found["candidates"]]


@pytest.mark.slow("starts the product")
def test_a_route_without_memory_is_neither_recalled_nor_learnt(
    observing: tuple[Product, Path], upstream: RecordingUpstream
) -> None:
    product, _ = observing
    answer = chat(product, FACT, "guest", "s1", host="guests.example.com")
    assert answer.headers["x-memory-status"] == "disabled"
    assert "x-memory-receipt" not in answer.headers
    assert "memory_context" not in sent(upstream)
    chat(product, "My sister is called Ida.", "guest", "s2")
    product.flush("guest")
    assert "Dorset" not in " ".join(product.memories("guest"))
    assert "Ida" in " ".join(product.memories("guest"))


def test_these_are_off_unless_they_are_set() -> None:
    memory = Settings().memory
    assert (memory.shadow.enabled, memory.shadow.learns, memory.holdout.share, memory.off_routes) == (
        False,
        True,
        0,
        (),
    )
