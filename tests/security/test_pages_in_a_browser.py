"""From a real browser: a page of another origin, and one that points its own name at this machine, get no memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from pages import CHROMIUM
from playwright.sync_api import Page, sync_playwright
from product import Product, listening, sentences
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from upstream import RecordingUpstream

MISSING = "NO CHROMIUM ON THE PATH: THE WEB PAGE IS NOT TESTED (on Debian: apt install chromium)"
EVIL = "evil.example"  # which this browser resolves to this machine
CHAT = """async ([url, user, text, kind]) => {
  const body = JSON.stringify({model: "m", memory_context: {user_id: user}, messages: [{role: "user", content: text}]});
  const mode = kind === "text/plain" ? "no-cors" : "cors";
  const options = {method: "POST", body, headers: {"content-type": kind}, mode};
  try {
    const answer = await fetch(url + "/v1/chat/completions", options);
    return [answer.status, answer.headers.get("x-memory-status")];
  } catch (error) {
    return ["refused", null];
  }
}"""
ORDERS = ("/drain_listeners", "/quitquitquit", "/logging?level=trace", "/healthcheck/fail", "/v1/memory/flush")
CONTROL = """async (urls) => Promise.all(urls.map((url) =>
  fetch(url, {method: "POST", mode: "no-cors"}).then(() => "reached", () => "refused")))"""
pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason=MISSING),
    pytest.mark.full("a browser; the rules are tested without one"),
]


@pytest.fixture(scope="module")
def site() -> Iterator[int]:
    """The port of a site that is not ours."""

    async def empty(request: Request) -> HTMLResponse:
        del request
        return HTMLResponse("<!doctype html><title>elsewhere</title>")

    with served(Starlette(routes=[Route("/", empty)])) as port:
        yield port


@pytest.fixture
def page() -> Iterator[Page]:
    flags = ["--no-sandbox", f"--host-resolver-rules=MAP {EVIL} 127.0.0.1"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser.new_page()
        browser.close()


def knows_the_cat(product: Product, user: str) -> None:
    product.chat("My cat is called Mochi.", user)
    assert product.flush(user) == {"pending": 0, "failed": 0}
    assert "mochi" in " ".join(sentences(product.memories(user)))


def assert_nothing_is_planted(product: Product, user: str) -> None:
    assert product.flush(user) == {"pending": 0, "failed": 0}
    assert "rex" not in " ".join(sentences(product.memories(user)))


def test_a_page_of_another_origin_gets_no_note_and_plants_nothing(
    shared_product: Product, upstream: RecordingUpstream, page: Page, site: int
) -> None:
    product, user = shared_product, "visitor of a page"
    knows_the_cat(product, user)
    page.goto(f"http://{EVIL}:{site}/")
    before = len(upstream.received)
    for kind in ("text/plain", "application/json"):
        page.evaluate(CHAT, [product.url, user, "What is my cat called? My dog is called Rex.", kind])
    arrived = [one for one in upstream.received[before:] if one.method == "POST"]
    assert arrived, "a body declared as text is sent without asking"
    assert all("Mochi" not in one.system_text() for one in arrived)
    assert_nothing_is_planted(product, user)


def test_a_rebound_name_gets_no_note(shared_product: Product, upstream: RecordingUpstream, page: Page) -> None:
    product, user = shared_product, "visitor of a rebound page"
    knows_the_cat(product, user)
    own = f"http://{EVIL}:{product.ports['proxy']}"
    page.goto(f"{own}/anything")
    sent = [own, user, "What is my cat called? My dog is called Rex.", "application/json"]
    assert page.evaluate(CHAT, sent) == [200, "disabled"]
    assert "Mochi" not in upstream.last_chat().system_text()
    assert_nothing_is_planted(product, user)


def test_a_page_of_this_machine_chats_with_memory_and_reads_what_it_got(
    shared_product: Product, upstream: RecordingUpstream, page: Page, site: int
) -> None:
    product, user = shared_product, "visitor of an own page"
    knows_the_cat(product, user)
    page.goto(f"http://localhost:{site}/")
    sent = [product.url, user, "What is my cat called?", "application/json"]
    assert page.evaluate(CHAT, sent) == [200, "used"]
    assert "Mochi" in upstream.last_chat().system_text()


def test_no_page_reaches_what_controls_the_parts(shared_product: Product, page: Page, site: int) -> None:
    product = shared_product
    assert product.process is not None
    parts = sorted(product.children())
    ports = {port for _, port in listening([product.process.pid, *parts])}
    assert len(ports) >= 3
    page.goto(f"http://{EVIL}:{site}/")
    page.evaluate(CONTROL, [f"http://127.0.0.1:{port}{path}" for port in ports for path in ORDERS])
    assert product.chat("Hello", "whoever").status_code == 200
    assert sorted(product.children()) == parts
    with product.admin() as admin:
        assert admin.get("/server_info").json()["state"] == "LIVE"
        assert not [line for line in admin.post("/logging").text.splitlines() if line.endswith(("trace", "debug"))]
