"""Shared projects through the whole product: chats of members, of others, and of a member who was removed."""

from __future__ import annotations

import time
from typing import Any

import httpx
from product import Product, in_time
from upstream import RecordingUpstream

from memory.recall.project_access import ROLE_SECONDS_MAX

FACT, QUESTION, MORE = "The kestrel launch is on Friday the 13th.", "When is the kestrel launch?", "And where is it?"
PROJECT = "project of the whole product"


def call(product: Product, user: str, method: str, path: str, body: object = None) -> Any:
    """REST through the proxy, under `/v1/memory`."""
    url = f"{product.url}/v1/memory{path}"
    answer = httpx.request(method, url, params={"user_id": user}, json=body, timeout=30)
    assert answer.is_success, answer.text
    return answer.json()


def chat(product: Product, user: str, *said: str) -> httpx.Response:
    messages = [
        {"role": role, "content": text} for text in said for role, text in (("user", text), ("assistant", "I see."))
    ]
    body = {"model": "m", "messages": messages[:-1], "memory_context": {"user_id": user, "project_id": PROJECT}}
    return httpx.post(f"{product.url}/v1/chat/completions", json=body, timeout=30)


def is_told(product: Product, upstream: RecordingUpstream, user: str, *said: str) -> bool:
    """Whether the model got to read what is shared."""
    assert in_time(lambda: chat(product, user, *said)).status_code == 200
    return "Friday the 13th" in upstream.last_chat().body.decode()


def test_members_are_told_others_are_not_and_a_removed_member_is_not_any_more(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    product = shared_product
    project = f"/projects/{PROJECT.replace(' ', '%20')}"
    call(product, "olga", "POST", "/projects", {"project_id": PROJECT})
    for user, role in (("edith", "editor"), ("vic", "viewer")):
        call(product, "olga", "PUT", f"{project}/members/{user}", {"role": role})
    shared = {"content": FACT, "project_id": PROJECT, "visibility": "members"}
    [memory_id] = call(product, "edith", "POST", "", {"memories": [shared]})["ids"]
    for user in ("olga", "edith", "vic"):
        assert is_told(product, upstream, user, QUESTION), user
    assert "said by a project member" in upstream.last_chat().body.decode()
    assert is_told(product, upstream, "vic", QUESTION, MORE), "put back"
    for user in ("xena", "Vic", "vic%20", "project/vic", "edith2"):
        assert not is_told(product, upstream, user, QUESTION), user
    assert call(product, "vic", "POST", "/search", {"query": QUESTION, "project_id": PROJECT})["memories"]
    call(product, "olga", "DELETE", f"{project}/members/vic")
    assert call(product, "vic", "POST", "/search", {"query": QUESTION, "project_id": PROJECT})["memories"] == []
    time.sleep(ROLE_SECONDS_MAX)  # as long as a filter may go by a role that it has read
    for said in ((QUESTION, MORE), (QUESTION,), (QUESTION, MORE, QUESTION)):
        assert not is_told(product, upstream, "vic", *said)
    call(product, "edith", "PATCH", f"/{memory_id}", {"visibility": "public"})
    assert is_told(product, upstream, "xena", QUESTION)
    assert is_told(product, upstream, "xena", QUESTION, MORE)
    call(product, "olga", "DELETE", f"/{memory_id}")
    for user in ("xena", "olga", "edith", "vic"):
        for said in ((QUESTION, MORE), (QUESTION,)):
            assert not is_told(product, upstream, user, *said), user


def test_what_is_said_in_a_chat_of_a_shared_project_stays_private_until_it_is_shared(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    product = shared_product
    call(product, "ute", "POST", "/projects", {"project_id": "sharing"})
    call(product, "ute", "PUT", "/projects/sharing/members/uwe", {"role": "viewer"})
    said = "My kayak is stored at the boathouse in Dorset."
    product.ask(said, "ute", project_id="sharing", session_id="s1")
    product.flush("ute")
    [memory] = [one for one in call(product, "ute", "GET", "")["memories"] if "Dorset" in one["content"]]

    def told(user: str) -> bool:
        product.ask("Where is the kayak stored?", user, project_id="sharing")
        return "Dorset" in upstream.last_chat().body.decode()

    assert (told("ute"), told("uwe")) == (True, False)
    shared = call(product, "ute", "PATCH", f"/{memory['id']}", {"visibility": "members", "project_id": "sharing"})
    assert (told("ute"), told("uwe")) == (True, True)
    seen = call(product, "uwe", "GET", f"/{shared['id']}")
    assert (seen["user_id"], seen["evidence"], seen["session_id"]) == ("ute", [], None)
    assert call(product, "ute", "GET", f"/{shared['id']}")["evidence"]
    turn = call(product, "ute", "GET", f"/{shared['id']}")["evidence"][0]["turn_id"]
    call(product, "ute", "DELETE", f"/turns/{turn}")
    assert (told("ute"), told("uwe")) == (False, False)
