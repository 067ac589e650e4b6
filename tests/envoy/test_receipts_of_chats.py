"""Each chat's receipt, by the id in its reply: what was decided and weighed, what went along, and how long it took."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from product import Product, eventually
from upstream import RecordingUpstream

TOLD = ("I keep my passport in the blue drawer.", "My sister Ines plays the cello.", "I am allergic to walnuts.")
QUESTION = "Where do I keep my passport?"


def receipt(product: Product, answer: httpx.Response, user_id: str) -> Any:
    """It is written behind the request, so it may come a moment after the reply."""
    url = f"{product.api}/v1/memory/receipts/{answer.headers['x-memory-receipt']}"

    def got() -> Any:
        found = httpx.get(url, headers={"x-authz-user-id": user_id}, timeout=10)
        return found.json() if found.status_code == 200 else None

    return eventually(got)


def test_a_used_memory_is_told_with_every_part_of_its_score_and_the_others_with_why_not(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    for number, statement in enumerate(TOLD):
        shared_product.chat(statement, "receipts", session_id=f"s{number}")
    assert shared_product.flush("receipts") == {"pending": 0, "failed": 0}
    answer = shared_product.ask(QUESTION, "receipts", session_id="later")
    assert answer.headers["x-memory-status"] == "used"
    shown = receipt(shared_product, answer, "receipts")
    assert (shown["status"], shown["reason"], shown["query"]) == ("used", "found", QUESTION)
    assert shown["signals"]["search"] is True
    by_content = {one["content"]: one for one in shown["candidates"]}
    assert by_content.keys() == set(TOLD)
    passport = by_content[TOLD[0]]
    assert passport["verdict"] == "injected"
    assert {"dense", "lexical", "recency"} <= passport["score_parts"].keys()
    assert sum(passport["score_parts"].values()) == pytest.approx(passport["score"], abs=1e-4)
    assert [by_content[other]["verdict"] for other in TOLD[1:]] == ["irrelevant", "in_profile"]
    assert set(shown["injected"]) == {passport["id"], by_content[TOLD[2]]["id"]}
    assert shown["signals"]["profile"]["version"] >= 1
    assert shown["tokens"] == sum(note["tokens"] for note in shown["notes"]) > 0
    assert {"wait", "notes", "embed", "retrieve", "select"} <= shown["timings_ms"].keys()


def test_nothing_found_and_not_searched_are_told_apart(shared_product: Product, upstream: RecordingUpstream) -> None:
    asked = shared_product.ask("What is my cat called?", "nobody yet")
    empty = receipt(shared_product, asked, "nobody yet")
    assert (empty["status"], empty["injected"], empty["candidates"]) == ("empty", [], [])
    greeted = shared_product.chat("Good morning!", "nobody yet")
    skipped = receipt(shared_product, greeted, "nobody yet")
    assert (skipped["status"], skipped["signals"]["search"]) == ("skipped", False)
    assert skipped["query"] == ""


def test_a_receipt_is_for_its_own_user_only(shared_product: Product, upstream: RecordingUpstream) -> None:
    answer = shared_product.ask(QUESTION, "owner of it")
    receipt(shared_product, answer, "owner of it")
    url = f"{shared_product.api}/v1/memory/receipts/{answer.headers['x-memory-receipt']}"
    assert httpx.get(url, headers={"x-authz-user-id": "somebody else"}, timeout=10).status_code == 404
