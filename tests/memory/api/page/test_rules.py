"""What holds for every page in every state: accessibility, width, languages, themes; and forged calls are refused."""

from __future__ import annotations

from typing import Any

import pytest
from api_parts import claims
from page_world import PageWorld, fill, memory, receipt
from pages import OPERATORS_PAGE, Opener, accessibility_faults, press
from playwright.sync_api import Browser, Page, expect
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

pytestmark = pytest.mark.full("one walk through each page is in the first tier")

LANGUAGES = {"en-GB": ("en", "Details", "Correct", "Forget", "Search"), "zh-CN": ("zh", "详情", "更正", "忘记", "搜索")}
LOOKS = [("light", "en-GB"), ("dark", "zh-CN")]
FORGED = """<!doctype html><title>evil</title><iframe src="{url}/v1/memory/ui/"></iframe><script>
const planted = '{{"memories": [{{"content": "planted"}}]}}';
const tries = [
  ["POST", "/v1/memory", {{"content-type": "text/plain"}}, "no-cors"],
  ["POST", "/v1/memory", {{"content-type": "application/json"}}, "cors"],
  ["POST", "/v1/memory", {{"content-type": "application/json", "x-memory-page": "1"}}, "cors"],
  ["POST", "/v1/memory/flush", {{}}, "no-cors"],
  ["DELETE", "/v1/memory?user_id=forged", {{"x-authz-user-id": "forged", "x-memory-page": "1"}}, "cors"],
  ["DELETE", "/v1/memory?user_id=forged", {{}}, "cors"],
  ["GET", "/v1/memory?user_id=forged", {{}}, "cors"],
];
window.done = Promise.all(tries.map(([method, path, headers, mode]) =>
  fetch("{url}" + path, {{method, headers, mode, body: method === "POST" ? planted : undefined}})
    .then((answer) => answer.type === "opaque" ? "opaque" : answer.status, () => "blocked")));
</script><form method="post" enctype="text/plain" action="{url}/v1/memory/flush"><button>go</button></form>"""


@pytest.mark.parametrize(("theme", "locale"), LOOKS)
def test_my_memory_is_accessible_in_every_state(open_page: Opener, world: PageWorld, theme: str, locale: str) -> None:
    user = f"axe-{theme}-{locale}"
    fill(world, user)
    language, details, correct, forget, search = LANGUAGES[locale]
    with open_page(locale=locale, color_scheme=theme, expected=("ERR_INTERNET_DISCONNECTED",)) as page:
        assert page.evaluate("document.documentElement.lang") == language
        expect(page.get_by_role("textbox")).to_be_visible()
        assert accessibility_faults(page) == []
        page.get_by_role("textbox").fill(user)
        page.keyboard.press("Enter")
        expect(page.get_by_role("article")).to_have_count(3)
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, background[4:-1].split(","))) > 380) == (theme == "light")
        page.get_by_role("button", name=details).first.click()
        expect(page.locator(".details dl").first).to_be_visible()
        page.get_by_role("button", name=correct).nth(1).click()
        expect(page.locator("textarea")).to_be_visible()
        assert accessibility_faults(page) == []
        page.get_by_role("button", name=forget, exact=True).last.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert accessibility_faults(page) == []
        page.keyboard.press("Escape")
        page.locator("summary").click()
        expect(page.locator("details .hint")).to_be_visible()
        assert accessibility_faults(page) == []
        page.get_by_role("combobox").nth(2).select_option("archived")
        page.get_by_role("combobox").nth(3).select_option("episodic")
        expect(page.locator("#list .notice")).to_be_visible()
        assert accessibility_faults(page) == []
        page.context.set_offline(True)
        press(page, search)
        expect(page.get_by_role("alert")).to_be_visible()
        assert accessibility_faults(page) == []


@pytest.mark.parametrize(("theme", "locale"), LOOKS)
def test_the_operators_page_is_accessible(open_page: Opener, world: PageWorld, theme: str, locale: str) -> None:
    world.bury("axe", f"axe-{theme}-{locale}")
    world.keep(receipt("axe", f"{theme}-{locale}", "m"))
    with open_page(OPERATORS_PAGE, locale=locale, color_scheme=theme) as page:
        page.locator("summary").first.click()
        expect(page.locator(".letters tbody tr").first).to_be_visible()
        assert accessibility_faults(page) == []


@pytest.mark.parametrize("path", ["/v1/memory/ui/", OPERATORS_PAGE])
@pytest.mark.parametrize("width", [360, 1600])
def test_nothing_is_cut_off_at_any_width(open_page: Opener, world: PageWorld, path: str, width: int) -> None:
    fill(world, f"wide-{width}-{len(path)}")
    world.bury("narrow", f"narrow-{width}-{len(path)}", reason="a-reason-without-spaces-" * 8)
    with open_page(path, user=f"wide-{width}-{len(path)}", viewport={"width": width, "height": 800}) as page:
        expect(page.locator("main article, main tbody tr").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_token_of_some_projects_shows_those_and_offers_nothing_for_all(open_page: Opener, world: PageWorld) -> None:
    world.put(
        memory("bound", "red", "The red plan", project_id="red"),
        memory("bound", "blue", "The blue plan", project_id="blue"),
        memory("bound", "green", "The green plan", project_id="green"),
    )
    verified = claims(sub="bound", projects=["red", "blue"])  # as the proxy hands a verified token over
    with open_page(mode="jwt", extra_http_headers=verified) as page:
        expect(page.locator(".content")).to_have_text("The red plan")
        page.get_by_role("button", name="Details").click()
        expect(page.get_by_role("article")).to_contain_text("It was never corrected")
        expect(page.get_by_role("button", name="Forget all…")).to_have_count(0)
        expect(page.get_by_role("button", name="Export")).to_have_count(0)
        page.get_by_label("Project").select_option("blue")
        expect(page.locator(".content")).to_have_text("The blue plan")


def test_a_page_of_another_origin_changes_nothing_and_sees_nothing(browser: Browser, world: PageWorld) -> None:
    async def show(_: Request) -> HTMLResponse:
        return HTMLResponse(FORGED.format(url=world.url))

    fill(world, "forged")
    before = world.contents("forged")
    page: Page = browser.new_page()
    with served(Starlette(routes=[Route("/", show)])) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        answers: list[Any] = page.evaluate("done")
        assert answers == ["opaque", "blocked", "blocked", "opaque", "blocked", "blocked", "blocked"]
        assert world.contents("forged") == before
        framed = page.frames[1]
        assert framed.query_selector("main") is None
        with page.expect_response("**/flush") as answer:
            page.get_by_role("button").click()
        assert answer.value.status in (403, 415)
    page.close()
