"""Profiles and summaries through the whole product: what a chat is given, until it is forgotten."""

from __future__ import annotations

import time
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


def teach(product: Product, user_id: str) -> None:
    for number, statement in enumerate(TOLD):
        product.chat(statement, user_id, session_id=f"s{number}")
    assert product.flush(user_id) == {"pending": 0, "failed": 0}


def covered(product: Product, upstream: RecordingUpstream, user_id: str, **config: Any) -> float:
    """The mean share of the relevant statements that stand in the prompt."""
    shares = []
    for question, words in ADVICE.items():
        product.ask(question, user_id, memory_config={"auto_store": False, **config})
        shares.append(mean(word in upstream.last_chat().system_text() for word in words))
    return mean(shares)


def call(product: Product, user_id: str, method: str, path: str, **more: Any) -> httpx.Response:
    """Under the proxy's own port."""
    headers = {"x-authz-user-id": user_id}
    return httpx.request(method, f"{product.url}/v1/memory{path}", headers=headers, timeout=30, **more)


def api(product: Product, user_id: str, method: str, path: str, **more: Any) -> httpx.Response:
    return call(product, user_id, method, path, **more).raise_for_status()


def profile(product: Product, user_id: str, method: str = "GET", **more: Any) -> httpx.Response:
    return call(product, user_id, method, "/profile", **more)


@pytest.mark.soak("judges shares of what a model finds near")
def test_requests_for_advice_gain_by_a_profile(shared_product: Product, upstream: RecordingUpstream) -> None:
    teach(shared_product, "advised")
    assert covered(shared_product, upstream, "advised", profile=False) <= WITHOUT_AT_MOST
    assert covered(shared_product, upstream, "advised", profile=True) >= WITH_AT_LEAST


def test_it_is_shown_pinned_and_off_and_chats_follow(shared_product: Product, upstream: RecordingUpstream) -> None:
    teach(shared_product, "owner")
    shown = profile(shared_product, "owner").json()
    vegan = next(line for line in shown["lines"] if line["text"].endswith("I'm vegan."))
    assert [one["quote"] for one in vegan["evidence"]] == ["I'm vegan."]
    assert shown["tokens"] <= 320
    pinned = profile(shared_product, "owner", "PUT", json={"pinned": ["Answer in German"]}).json()
    assert pinned["version"] == shown["version"] + 1
    shared_product.ask("Where do I live?", "owner", memory_config={"auto_store": False})
    assert upstream.last_chat().system_text().startswith(pinned["text"])
    profile(shared_product, "owner", "PUT", json={"enabled": False})
    shared_product.ask("Where do I live?", "owner", memory_config={"auto_store": False})
    assert upstream.last_chat().system_text().startswith("<memory>")
    assert profile(shared_product, "owner", "DELETE").json() == {"deleted": True}
    assert profile(shared_product, "owner").status_code == 404


def test_nobody_has_to_ask_for_it_to_be_built_and_forgetting_and_erasing_reach_it(shared_product: Product) -> None:
    shared_product.chat("I'm vegan.", "quiet")
    (memory,) = eventually(lambda: api(shared_product, "quiet", "GET", "").json()["memories"])
    eventually(lambda: profile(shared_product, "quiet").status_code == 200)
    api(shared_product, "quiet", "DELETE", f"/{memory['id']}")
    assert profile(shared_product, "quiet").json()["lines"] == []
    profile(shared_product, "quiet", "PUT", json={"pinned": ["Answer in German"]})
    api(shared_product, "quiet", "DELETE", "?user_id=quiet")
    assert profile(shared_product, "quiet").status_code == 404


# Summaries: asked for in a new chat, and gone when forgotten


BOAT = (
    "I want to buy a small sailing boat this year.",
    "We plan to sail around Rügen with my brother Nils.",
    "How much does a berth in Stralsund cost?",
)
KITCHEN = ("Our kitchen needs new cupboards.", "We decided on oak fronts and a white worktop.", "Which lamps fit oak?")
LAST_YEAR = time.gmtime().tm_year - 1
IN_MAY, IN_MARCH = f"{LAST_YEAR}-05-12T10:00:00Z", f"{LAST_YEAR}-03-20T10:00:00Z"


def tell(product: Product, user_id: str, session_id: str, statements: tuple[str, ...], at: str) -> None:
    """A session of another time, as an application imports it, that has ended."""
    messages = [
        message
        for said in statements
        for message in ({"role": "user", "content": said}, {"role": "assistant", "content": "Good idea."})
    ]
    body = {"session_id": session_id, "at": at, "messages": messages}
    api(product, user_id, "POST", "/turns", json=body)
    product.flush(user_id)
    assert api(product, user_id, "POST", f"/sessions/{session_id}/end").status_code == 202


def shown(product: Product, user_id: str, session_id: str) -> dict[str, Any]:
    return api(product, user_id, "GET", f"/sessions/{session_id}").json()


def summary(product: Product, user_id: str, session_id: str, *, version: int = 1) -> dict[str, Any]:
    def current() -> dict[str, Any] | None:
        found = shown(product, user_id, session_id)["summary"]
        return found if found and found["version"] == version else None

    return eventually(current)


def asked(product: Product, upstream: RecordingUpstream, user_id: str, question: str) -> tuple[str, str]:
    """What a new chat is given: memories, and summaries."""
    answer = product.chat(question, user_id, memory_config={"auto_store": False, "profile": False})
    assert answer.status_code == 200
    facts, _, summaries = upstream.last_chat().system_text().partition("<past_conversations>")
    return facts, summaries


def test_a_past_talk_gets_its_summary_until_that_is_gone(shared_product: Product, upstream: RecordingUpstream) -> None:
    product, user, about_may = shared_product, "sailor", "What did we talk about in May?"
    tell(product, user, "boat", BOAT, IN_MAY)
    tell(product, user, "kitchen", KITCHEN, IN_MARCH)
    first = summary(product, user, "boat")
    summary(product, user, "kitchen")
    assert first["title"] == BOAT[0]
    assert "sail around Rügen" in first["text"]
    assert len(first["turn_ids"]) == 3

    _, in_may = asked(product, upstream, user, about_may)
    assert [word in in_may for word in (f"[{LAST_YEAR}-05-12]", "Rügen", "Nils", "cupboards")] == [True] * 3 + [False]
    _, topical = asked(product, upstream, user, "Remind me of what we planned in our chat about the kitchen.")
    assert ("cupboards" in topical, "sailing" in topical) == (True, False)
    _, latest = asked(product, upstream, user, "What did we discuss last time?")
    assert latest.index("sailing boat") < latest.index("cupboards")
    facts, summaries = asked(product, upstream, user, "What is my brother called?")
    assert ("Nils" in facts, summaries) == (True, "")
    assert asked(product, upstream, "newcomer-in-june", about_may) == ("", "")

    (memory,) = [one for one in api(product, user, "GET", "?limit=100").json()["memories"] if "Nils" in one["content"]]
    api(product, user, "DELETE", f"/{memory['id']}")
    assert "Nils" not in "".join(asked(product, upstream, user, about_may))  # the same conversation, and its note
    second = eventually(lambda: shown(product, user, "boat")["summary"])
    assert "Nils" not in second["title"] + second["text"]
    assert second["turn_ids"] != first["turn_ids"]
    api(product, user, "DELETE", "/sessions/boat")
    assert "Rügen" not in "".join(asked(product, upstream, user, about_may))
    api(product, user, "DELETE", f"?user_id={user}")
    product.flush(user)
    assert asked(product, upstream, user, about_may) == ("", "")
