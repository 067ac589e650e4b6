"""The web page through Envoy where the edge says who calls: a gateway in mode `header`, a token in mode `jwt`.

In a browser: each user sees, corrects and forgets their own memories, and reaches nobody else's, whatever they claim.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from edge_gateway import OPERATOR, Edge, bearer
from pages import MY_PAGE, OPERATORS_PAGE, Watched, card, chromium, press, watched
from playwright.sync_api import Browser, expect
from product import in_time
from token_issuer import TokenIssuer

pytestmark = pytest.mark.full("a product for each mode, and a browser")
FACT, QUESTION = "My lighthouse is called Barnaby.", "What is my lighthouse called?"
FETCHES = """(calls) => Promise.all(calls.map(async ([method, path, headers]) => {
  const body = method === "PATCH" ? '{"content": "planted"}' : undefined;
  const sent = {"x-memory-page": "1", ...(body ? {"content-type": "application/json"} : {}), ...headers};
  const answer = await fetch(path, {method, headers: sent, body});
  return [answer.status, await answer.text()];
}))"""


@dataclass(frozen=True)
class Visited:
    """The edge, and a browser that goes there."""

    edge: Edge
    browser: Browser

    def call(self, method: str, path: str, user: str, **more: Any) -> httpx.Response:
        headers, url = self.edge.of_browser(user), self.edge.url + path
        return in_time(lambda: httpx.request(method, url, headers=headers, timeout=130, **more))

    def chat(self, user: str, text: str, session: str) -> httpx.Response:
        body = {
            "model": "m",
            "messages": [{"role": "user", "content": text}],
            "memory_context": {"session_id": session},
        }
        answer = self.call("POST", "/v1/chat/completions", user, json=body)
        assert answer.status_code == 200, answer.text
        return answer

    def taught(self, user: str) -> str:
        """The id of a memory that a chat taught, and another one used."""
        self.chat(user, FACT, "s1")
        assert self.call("POST", "/v1/memory/flush", user, json={}).json() == {"pending": 0, "failed": 0}
        assert self.chat(user, QUESTION, "s2").headers["x-memory-status"] == "used"
        assert self.call("POST", "/v1/memory/flush", user, json={}).status_code == 200
        (memory,) = self.call("GET", "/v1/memory", user).json()["memories"]
        return str(memory["id"])

    def page(self, user: str, path: str = MY_PAGE, **options: Any) -> AbstractContextManager[Watched]:
        """As a browser of that user has it."""
        session = self.edge.of_browser(user) if self.edge.mode == "header" else {}
        return watched(self.browser, self.edge.url + path, extra_http_headers=session, **options)

    def sign_in(self, opened: Watched, user: str) -> None:
        """In mode `jwt` the page asks for the token; in mode `header` the gateway has said who it is."""
        if self.edge.mode == "jwt":
            token = self.edge.of_browser(user)["authorization"].removeprefix("Bearer ")
            opened.page.get_by_label("Access token").fill(token)
            opened.page.keyboard.press("Enter")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if shutil.which("chromium") is None:
        pytest.skip("NO CHROMIUM ON THE PATH: THE WEB PAGE IS NOT TESTED (on Debian: apt install chromium)")
    with chromium() as found:
        yield found


@pytest.fixture
def visited(edge_product: Edge, browser: Browser) -> Visited:
    return Visited(edge_product, browser)


def test_a_user_sees_corrects_and_forgets_their_own_under_the_identity_of_the_edge(visited: Visited) -> None:
    visited.taught("ada")
    asked_first = ("401",) if visited.edge.mode == "jwt" else ()
    with visited.page("ada") as opened:
        page = opened.page
        visited.sign_in(opened, "ada")
        lighthouse = page.get_by_role("article").filter(has_text="Barnaby")
        lighthouse.get_by_role("button", name="Details").click()
        lighthouse.get_by_role("button", name="Show the answer").click()
        expect(lighthouse.locator(".answer blockquote")).to_have_text([QUESTION, "Noted."])
        lighthouse.get_by_role("button", name="Correct").click()
        page.get_by_label("Corrected text").fill("My lighthouse is called Old Barnaby")
        press(page, "Save")
        corrected = card(page, "My lighthouse is called Old Barnaby")
        expect(corrected.locator(".lines").filter(has_text="Corrected by you")).to_be_visible()
        with page.expect_download() as waiting:
            press(page, "Export")
        exported = Path(waiting.value.path()).read_text(encoding="utf-8")
        assert json.loads(exported.splitlines()[0])["user_id"] == visited.edge.user_id("ada")
        assert "Old Barnaby" in exported
        press(page, "Pause")
        expect(page.get_by_text("Paused since")).to_be_visible()
        press(page, "Resume")
        expect(page.get_by_text("Paused since")).to_be_hidden()
        corrected.get_by_role("button", name="Forget").click()
        press(page, "Forget it")
        expect(page.get_by_text("The memory was forgotten.")).to_be_visible()
        opened.assert_clean(expected=asked_first)
    assert visited.call("GET", "/v1/memory", "ada").json()["memories"] == []


def test_another_user_s_memories_are_out_of_reach_from_the_page(visited: Visited) -> None:
    memory_id = visited.taught("bea")
    (receipt,) = visited.call("GET", "/v1/memory/receipts", "bea", params={"memory_id": memory_id}).json()["receipts"]
    paths = (
        *("", "?user_id=bea", "/stats?user_id=bea", "/export?user_id=bea", "/receipts?user_id=bea"),
        *(f"/{memory_id}", f"/{memory_id}/history", f"/{memory_id}?user_id=bea"),
        *(f"/receipts/{receipt['id']}", f"/receipts/{receipt['id']}/messages"),
    )
    forged: tuple[dict[str, str], ...] = (
        {},
        {"x-authz-user-id": "bea"},
        {"x-authz-user-id": "bea", **bearer(TokenIssuer().token(sub="bea"))},
    )
    calls = [("GET", f"/v1/memory{path}", headers) for path in paths for headers in forged]
    calls += [(method, f"/v1/memory/{memory_id}", headers) for method in ("PATCH", "DELETE") for headers in forged]
    with visited.page("morgan") as opened:
        visited.sign_in(opened, "morgan")
        expect(opened.page.get_by_text("Nothing is remembered yet.")).to_be_visible()
        own = visited.edge.identified("morgan") if visited.edge.mode == "jwt" else {}
        signed_in = [(method, path, {**own, **headers}) for method, path, headers in calls]
        answers = opened.page.evaluate(FETCHES, signed_in)
        assert len(answers) == len(calls)
        assert [path for (_, path, _), (_, text) in zip(calls, answers, strict=True) if "Barnaby" in text] == []
        of_bea = [one for one, (_, path, _) in zip(answers, calls, strict=True) if memory_id in path or "bea" in path]
        assert {status for status, _ in of_bea} <= {400, 401, 403, 404}
        assert opened.page.get_by_role("article").count() == 0
    assert [one["content"] for one in visited.call("GET", "/v1/memory", "bea").json()["memories"]] == [FACT]


def test_whoever_goes_round_the_edge_or_forges_its_word_is_asked_who_they_are(visited: Visited) -> None:
    visited.taught("cleo")
    direct = visited.edge.product.url  # past the gateway, in mode `header`
    forged = {"x-authz-user-id": "cleo"} | (
        bearer(TokenIssuer().token(sub="cleo")) if visited.edge.mode == "jwt" else {}
    )
    with watched(visited.browser, direct + MY_PAGE, extra_http_headers=forged) as opened:
        page = opened.page
        if visited.edge.mode == "header":
            expect(page.get_by_text("Open the page through that gateway.")).to_be_visible()
        else:
            page.get_by_label("Access token").fill(TokenIssuer().token(sub="cleo"))
            page.keyboard.press("Enter")
            expect(page.get_by_label("Access token")).to_have_value("")
        assert "Barnaby" not in page.content()
        opened.assert_clean(expected=("401",))


def test_operators_sign_in_with_a_service_token_whatever_the_edge_says(visited: Visited) -> None:
    with visited.page("ada", OPERATORS_PAGE) as opened:
        page = opened.page
        page.get_by_label("Service token").fill("mpt_none-such-0123456789")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert").first).to_be_visible()
        page.get_by_label("Service token").fill(OPERATOR)
        page.keyboard.press("Enter")
        workers = page.get_by_role("region", name="Health").get_by_role("listitem").filter(has_text="Workers")
        expect(workers.locator("strong")).to_have_text("Works")
        opened.assert_clean(expected=("401", "403"))
