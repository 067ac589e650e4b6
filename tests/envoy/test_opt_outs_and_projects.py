"""Who shares memory, through the whole product: opting out by user, header and route; members of shared projects."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from product import OFF_ROUTE, Product, eventually, in_time
from upstream import RecordingUpstream

FACT = "My kayak is stored at the boathouse in Dorset."
QUESTION = "Where is my kayak stored?"
LAUNCH, WHEN, MORE = "The kestrel launch is on Friday the 13th.", "When is the kestrel launch?", "And where is it?"
PROJECT = "project of the whole product"


def sent(upstream: RecordingUpstream) -> str:
    return upstream.last_chat().body.decode()


def asked(product: Product, user: str, session: str, **headers: str) -> str:
    """The status of the question's reply."""
    return product.ask(QUESTION, user, session_id=session, headers=headers).headers["x-memory-status"]


def test_a_user_opts_out_and_in_again(shared_product: Product, upstream: RecordingUpstream) -> None:
    product, user = shared_product, {"user_id": "opting-out"}
    product.chat(FACT, "opting-out", session_id="s1")
    product.flush("opting-out")
    assert asked(product, "opting-out", "s2") == "used"
    switch = f"{product.url}/v1/memory/opt-out"  # under the proxy's port, like all of the API
    assert httpx.put(switch, params=user, timeout=30).json()["opted_out"] is True
    assert asked(product, "opting-out", "s3") == "disabled"
    assert "Dorset" not in sent(upstream)
    product.chat("My sister is called Ida.", "opting-out", session_id="s4")
    product.flush("opting-out")
    assert httpx.delete(switch, params=user, timeout=30).json()["opted_out"] is False
    assert asked(product, "opting-out", "s5") == "used"
    product.chat("My brother is called Max.", "opting-out", session_id="s6")
    product.flush("opting-out")
    memories = " ".join(product.memories("opting-out"))
    assert ("Dorset" in memories, "Ida" in memories, "Max" in memories) == (True, False, True)


@pytest.mark.parametrize(("user", "off"), [("header-off", {"X-Memory": "Off"}), ("route-off", {"host": OFF_ROUTE})])
def test_a_header_and_a_route_switch_memory_off_for_one_request(
    shared_product: Product, upstream: RecordingUpstream, user: str, off: dict[str, str]
) -> None:
    product = shared_product
    product.chat(FACT, user, session_id="s1")
    product.flush(user)
    answer = product.chat(f"{QUESTION} My sister is called Ida.", user, session_id="s2", headers=off)
    assert answer.headers["x-memory-status"] == "disabled"
    assert "x-memory-receipt" not in answer.headers
    assert "x-memory" not in upstream.last_chat().headers
    assert not [word for word in ("memory_context", "Dorset") if word in sent(upstream)]
    assert asked(product, user, "s3", **{"x-memory": "on"}) == "used"
    product.flush(user)
    assert "Ida" not in " ".join(product.memories(user))


def call(product: Product, user: str, method: str, path: str, body: object = None) -> Any:
    """REST through the proxy, under `/v1/memory`."""
    url = f"{product.url}/v1/memory{path}"
    answer = httpx.request(method, url, params={"user_id": user}, json=body, timeout=30)
    assert answer.is_success, answer.text
    return answer.json()


def let_in(product: Product, owner: str, project: str, user: str, role: str) -> None:
    call(product, owner, "PUT", f"{project}/members/{user}", {"role": role})
    [invitation] = call(product, user, "GET", "/invitations")["invitations"]
    call(product, user, "POST", f"/invitations/{invitation['id']}/accept")


def chat_in_project(product: Product, user: str, *said: str) -> httpx.Response:
    talk = [{"role": role, "content": text} for text in said for role, text in (("user", text), ("assistant", "So."))]
    body = {"model": "m", "messages": talk[:-1], "memory_context": {"user_id": user, "project_id": PROJECT}}
    return httpx.post(f"{product.url}/v1/chat/completions", json=body, timeout=30)


def is_told(product: Product, upstream: RecordingUpstream, user: str, *said: str) -> bool:
    """Whether the model got to read what is shared."""
    assert in_time(lambda: chat_in_project(product, user, *said)).status_code == 200
    return "Friday the 13th" in sent(upstream)


def test_members_who_accepted_are_told_others_are_not_and_a_removed_member_is_not_any_more(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    product, project = shared_product, f"/projects/{PROJECT.replace(' ', '%20')}"
    call(product, "olga", "POST", "/projects", {"project_id": PROJECT})
    for user, role in (("edith", "editor"), ("vic", "viewer")):
        let_in(product, "olga", project, user, role)
    shared = {"content": LAUNCH, "project_id": PROJECT, "visibility": "members"}
    [memory_id] = call(product, "edith", "POST", "", {"memories": [shared]})["ids"]
    for user in ("olga", "edith", "vic"):
        assert is_told(product, upstream, user, WHEN), user
    assert "said by a project member" in sent(upstream)
    assert is_told(product, upstream, "vic", WHEN, MORE), "put back"
    for user in ("xena", "Vic", "vic%20", "project/vic", "edith2"):
        assert not is_told(product, upstream, user, WHEN), user
    assert call(product, "vic", "POST", "/search", {"query": WHEN, "project_id": PROJECT})["memories"]
    call(product, "olga", "DELETE", f"{project}/members/vic")
    assert call(product, "vic", "POST", "/search", {"query": WHEN, "project_id": PROJECT})["memories"] == []
    eventually(lambda: not is_told(product, upstream, "vic", WHEN))  # roles that a filter has read count for a while
    for said in ((WHEN, MORE), (WHEN,), (WHEN, MORE, WHEN)):
        assert not is_told(product, upstream, "vic", *said)
    call(product, "edith", "PATCH", f"/{memory_id}", {"visibility": "public"})
    call(product, "olga", "PUT", f"{project}/members/xena", {"role": "viewer"})
    assert call(product, "xena", "GET", f"/{memory_id}")["content"] == LAUNCH, "by its id alone"
    for user in ("xena", "vic"):
        assert not is_told(product, upstream, user, WHEN), user
    call(product, "olga", "DELETE", f"/{memory_id}")
    for user in ("xena", "olga", "edith", "vic"):
        for said in ((WHEN, MORE), (WHEN,)):
            assert not is_told(product, upstream, user, *said), user


def test_words_in_a_project_are_private_until_shared(shared_product: Product, upstream: RecordingUpstream) -> None:
    product = shared_product
    call(product, "ute", "POST", "/projects", {"project_id": "sharing"})
    let_in(product, "ute", "/projects/sharing", "uwe", "viewer")
    product.ask(FACT, "ute", project_id="sharing", session_id="s1")
    product.flush("ute")
    [memory] = [one for one in call(product, "ute", "GET", "")["memories"] if "Dorset" in one["content"]]

    def told(user: str) -> bool:
        product.ask("Where is the kayak stored?", user, project_id="sharing")
        return "Dorset" in sent(upstream)

    assert (told("ute"), told("uwe")) == (True, False)
    shared = call(product, "ute", "PATCH", f"/{memory['id']}", {"visibility": "members", "project_id": "sharing"})
    assert (told("ute"), told("uwe")) == (True, True)
    seen = call(product, "uwe", "GET", f"/{shared['id']}")
    assert (seen["user_id"], seen["evidence"], seen["session_id"]) == ("ute", [], None)
    evidence, *_ = call(product, "ute", "GET", f"/{shared['id']}")["evidence"]
    call(product, "ute", "DELETE", f"/turns/{evidence['turn_id']}")
    assert (told("ute"), told("uwe")) == (False, False)
