"""Profiles and receipts through the whole product: what a chat is given, and what is told of it afterwards."""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

import httpx
import pytest
from product import Product, eventually
from upstream import RecordingUpstream

TOLD = (
    "I'm vegan.",
    "I am allergic to peanuts.",
    "I live in Leeds.",
    "I work as a nurse, mostly night shifts.",
    "I have two small children, Max and Ida.",
    "I play the cello in an amateur orchestra.",
    "Please keep your answers short.",
    "My dog Rex is afraid of thunder.",
    "I drive a blue Skoda Octavia.",
    "I prefer window seats on trains.",
)
ADVICE = {
    "Can you suggest a restaurant for Saturday?": ("vegan",),
    "What should I cook tonight?": ("vegan", "peanuts"),
    "Which snack should I pack for the flight?": ("peanuts", "vegan"),
    "Please plan a weekend for me.": ("Leeds", "children"),
    "Give me some ideas for a day out.": ("Leeds", "children"),
    "How can I sleep better?": ("night shifts",),
    "What could I wish for as a birthday present?": ("cello",),
    "Explain to me how a heat pump works.": ("short",),
    "Recommend a Thai dish to order.": ("vegan", "peanuts"),
    "Is there a club nearby that I could join?": ("Leeds", "cello"),
    "Which flat should I rent, the one with a garden or the one in the centre?": ("children", "dog"),
    "Write me a packing list for camping.": ("dog", "children"),
    "What would be a good breakfast for me?": ("vegan", "peanuts"),
    "Book me a seat for the trip to London.": ("window",),
    "What roof box would fit?": ("Skoda",),
}
"""Requests for advice, with words of the statements that a good answer follows."""

WITHOUT_AT_MOST = 0.73  # reached: 0.70
WITH_AT_LEAST = 0.84  # reached: 0.87


STATED = ("I keep my passport in the blue drawer.", "My sister Ines plays the cello.", "I am allergic to walnuts.")
WHERE = "Where do I keep my passport?"


def teach(product: Product, user_id: str) -> None:
    for number, statement in enumerate(TOLD):
        product.chat(statement, user_id, session_id=f"s{number}")
    assert product.flush(user_id) == {"pending": 0, "failed": 0}


def sent(upstream: RecordingUpstream) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(upstream.received[-1].body)
    return found


def ours(body: dict[str, Any]) -> str:
    return "\n".join(one["content"] for one in body["messages"] if one["role"] == "system")


def covered(product: Product, upstream: RecordingUpstream, user_id: str, **config: Any) -> float:
    """The mean share of the relevant statements that stand in the prompt."""
    shares = []
    for question, words in ADVICE.items():
        product.ask(question, user_id, memory_config={"auto_store": False, **config})
        shares.append(mean(word in ours(sent(upstream)) for word in words))
    return mean(shares)


def profile(product: Product, user_id: str, method: str = "GET", **more: Any) -> httpx.Response:
    """Under the proxy's own port."""
    headers = {"x-authz-user-id": user_id}
    return httpx.request(method, f"{product.url}/v1/memory/profile", headers=headers, timeout=30, **more)


@pytest.mark.soak("judges shares of what a model finds near")
def test_requests_for_advice_gain_by_a_profile(shared_product: Product, upstream: RecordingUpstream) -> None:
    teach(shared_product, "advised")
    without = covered(shared_product, upstream, "advised", profile=False)
    gained = covered(shared_product, upstream, "advised", profile=True)
    assert without <= WITHOUT_AT_MOST
    assert gained >= WITH_AT_LEAST


def test_it_is_shown_pinned_and_switched_off_and_the_next_chat_follows(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    teach(shared_product, "owner")
    shown = profile(shared_product, "owner").json()
    vegan = next(line for line in shown["lines"] if line["text"].endswith("I'm vegan."))
    assert [one["quote"] for one in vegan["evidence"]] == ["I'm vegan."]
    assert shown["tokens"] <= 200
    pinned = profile(shared_product, "owner", "PUT", json={"pinned": ["Answer in German"]}).json()
    assert pinned["version"] == shown["version"] + 1
    shared_product.ask("Where do I live?", "owner", memory_config={"auto_store": False})
    assert ours(sent(upstream)).startswith(pinned["text"])
    profile(shared_product, "owner", "PUT", json={"enabled": False})
    shared_product.ask("Where do I live?", "owner", memory_config={"auto_store": False})
    assert ours(sent(upstream)).startswith("<memory>")
    assert profile(shared_product, "owner", "DELETE").json() == {"deleted": True}
    assert profile(shared_product, "owner").status_code == 404


def test_nobody_has_to_ask_for_it_to_be_built_and_forgetting_and_erasing_reach_it(shared_product: Product) -> None:
    shared_product.chat("I'm vegan.", "quiet")
    url, headers = f"{shared_product.api}/v1/memory", {"x-authz-user-id": "quiet"}
    (memory,) = eventually(lambda: httpx.get(url, headers=headers, timeout=30).json()["memories"])
    eventually(lambda: profile(shared_product, "quiet").status_code == 200)
    httpx.delete(f"{url}/{memory['id']}", headers=headers, timeout=30).raise_for_status()
    assert profile(shared_product, "quiet").json()["lines"] == []
    profile(shared_product, "quiet", "PUT", json={"pinned": ["Answer in German"]})
    httpx.delete(url, params={"user_id": "quiet"}, headers=headers, timeout=30).raise_for_status()
    assert profile(shared_product, "quiet").status_code == 404


def test_a_used_memory_is_told_with_every_part_of_its_score_and_the_others_with_why_not(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    for number, statement in enumerate(STATED):
        shared_product.chat(statement, "receipts", session_id=f"s{number}")
    assert shared_product.flush("receipts") == {"pending": 0, "failed": 0}
    answer = shared_product.ask(WHERE, "receipts", session_id="later")
    assert answer.headers["x-memory-status"] == "used"
    shown = shared_product.receipt(answer, "receipts")
    assert (shown["status"], shown["reason"], shown["query"]) == ("used", "found", WHERE)
    assert shown["signals"]["search"] is True
    by_content = {one["content"]: one for one in shown["candidates"]}
    assert by_content.keys() == set(STATED)
    passport = by_content[STATED[0]]
    assert passport["verdict"] == "injected"
    assert {"dense", "lexical", "recency"} <= passport["score_parts"].keys()
    assert sum(passport["score_parts"].values()) == pytest.approx(passport["score"], abs=1e-4)
    assert by_content[STATED[1]]["verdict"] not in ("injected", "in_profile")
    assert by_content[STATED[2]]["verdict"] == "in_profile"
    assert set(shown["injected"]) == {passport["id"], by_content[STATED[2]]["id"]}
    assert shown["signals"]["profile"]["version"] >= 1
    assert shown["tokens"] == sum(note["tokens"] for note in shown["notes"]) > 0
    assert {"wait", "notes", "embed", "retrieve", "select"} <= shown["timings_ms"].keys()


def test_nothing_found_and_not_searched_are_told_apart(shared_product: Product, upstream: RecordingUpstream) -> None:
    asked = shared_product.ask("What is my cat called?", "nobody yet")
    empty = shared_product.receipt(asked, "nobody yet")
    assert (empty["status"], empty["injected"], empty["candidates"]) == ("empty", [], [])
    greeted = shared_product.chat("Good morning!", "nobody yet")
    skipped = shared_product.receipt(greeted, "nobody yet")
    assert (skipped["status"], skipped["signals"]["search"]) == ("skipped", False)
    assert skipped["query"] == ""


def test_a_receipt_is_for_its_own_user_only(shared_product: Product, upstream: RecordingUpstream) -> None:
    answer = shared_product.ask(WHERE, "owner of it")
    shared_product.receipt(answer, "owner of it")
    url = f"{shared_product.api}/v1/memory/receipts/{answer.headers['x-memory-receipt']}"
    assert httpx.get(url, headers={"x-authz-user-id": "somebody else"}, timeout=30).status_code == 404
