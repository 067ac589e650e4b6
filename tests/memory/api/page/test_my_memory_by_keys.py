"""*My memory* without a mouse: each action by keys alone, where the focus is afterwards, and what is announced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from keyboard import by_keys
from page_users import QUESTION, memory
from page_world import PageWorld, many
from pages import Opener, card
from playwright.sync_api import Locator, Page, Route, expect

pytestmark = pytest.mark.full("one walk through each page is in the first tier")


def details(page: Page, content: str) -> Locator:
    return card(page, content).get_by_role("button", name="Details")


def has_cards(page: Page, count: int) -> None:
    expect(page.get_by_role("article")).to_have_count(count)


def small_pages(page: Page, limit: int) -> None:
    """Lists come in pages of so many memories, from the next one on."""

    def smaller(route: Route) -> None:
        route.continue_(url=route.request.url.replace("limit=30", f"limit={limit}"))

    page.route("**/v1/memory?*limit=30*", smaller)
    page.reload()
    has_cards(page, limit)


def test_the_first_key_skips_to_the_content(open_page: Opener, user: str) -> None:
    with by_keys(open_page(user=user)) as keys:
        has_cards(keys.page, 3)
        keys.press("Tab")
        keys.is_at(keys.page.get_by_role("link", name="Skip to content"))
        keys.press("Enter")
        keys.is_at(keys.page.get_by_role("main"))
        keys.press("Tab")
        keys.is_at_button("Pause")


def test_all_memories_are_exported(open_page: Opener, user: str) -> None:
    with by_keys(open_page(user=user)) as keys:
        has_cards(keys.page, 3)
        for key in ("Enter", "Space"):
            keys.go("Export")
            with keys.page.expect_download() as waiting:
                keys.press(key)
            lines = Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()
            assert json.loads(lines[0])["user_id"] == user
            keys.hears("All memories were exported.")
            keys.is_at_button("Export")


def test_memory_is_paused_and_resumed(open_page: Opener, user: str, world: PageWorld) -> None:
    opt_outs = world.parts.state.opt_outs
    with by_keys(open_page(user=user)) as keys:
        has_cards(keys.page, 3)
        keys.go("Pause")
        keys.press("Space")
        keys.hears("Memory is paused.")
        keys.is_at_button("Resume")
        expect(keys.page.get_by_text("Paused since")).to_be_visible()
        assert world.run(opt_outs.since(user)) is not None
        keys.press("Enter")
        keys.hears("Memory is used again from the next chat on.")
        keys.is_at_button("Pause")
        assert world.run(opt_outs.since(user)) is None


def test_an_archived_memory_is_restored(open_page: Opener, user: str, world: PageWorld) -> None:
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        has_cards(page, 3)
        keys.go("Show")
        keys.press("ArrowDown", "ArrowDown")
        keys.hears("1 memory shown.")
        keys.is_at(page.get_by_label("Show"))
        keys.go("Restore")
        keys.press("Enter")
        keys.hears("The memory is current again.")
        keys.is_at(details(page, "Was looking for a used bicycle"))
        expect(page.locator("#summary")).to_have_text("4 current memories · 1 replaced")
        assert "Was looking for a used bicycle" in world.contents(user)


def test_more_of_a_long_list_is_loaded(open_page: Opener, world: PageWorld) -> None:
    world.put(*many(memory("keys-many", "m", "x"), 65, lambda number: f"Fact {number:02}"))
    with by_keys(open_page(user="keys-many")) as keys:
        page = keys.page
        has_cards(page, 30)
        keys.go("Load more", backward=True)
        keys.press("Enter")
        keys.hears("30 more memories loaded.")
        keys.is_at(details(page, "Fact 30"))
        keys.go("Load more", limit=100)
        keys.press("Space")
        keys.hears("5 more memories loaded.")
        keys.is_at(details(page, "Fact 60"))
        expect(page.get_by_role("button", name="Load more")).to_have_count(0)


def test_loading_more_where_nothing_is_left_stays_at_the_last_memory(open_page: Opener, world: PageWorld) -> None:
    world.put(*many(memory("keys-last", "m", "x"), 3, lambda number: f"Fact {number}"))
    with by_keys(open_page(user="keys-last")) as keys:
        small_pages(keys.page, 2)
        world.run(world.parts.library().delete("keys-last", "keys-last-m-2"))
        keys.go("Load more", backward=True)
        keys.press("Enter")
        keys.hears("0 more memories loaded.")
        keys.is_at(details(keys.page, "Fact 1"))


def test_a_memory_is_forgotten_and_reading_goes_on_at_the_next(open_page: Opener, user: str, world: PageWorld) -> None:
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        has_cards(page, 3)
        contents = page.locator(".content").all_inner_texts()
        keys.go("Forget")
        keys.press("Enter")
        keys.is_at_button("Cancel")
        keys.press("Escape")
        forget = card(page, contents[0]).get_by_role("button", name="Forget")
        keys.is_at(forget)
        keys.press("Space")
        keys.is_at_button("Cancel")
        keys.press("Enter")
        keys.is_at(forget)
        assert len(world.contents(user)) == 3
        for left in (contents[1:], contents[2:]):
            keys.press("Enter")
            keys.is_at_button("Cancel")
            keys.go("Forget it")
            keys.press("Enter")
            keys.hears("The memory was forgotten.")
            keys.is_at(details(page, left[0]))
            expect(page.locator(".content")).to_have_text(left)
            assert sorted(world.contents(user)) == sorted(left)
            keys.go("Forget")
        keys.press("Enter")
        keys.is_at_button("Cancel")
        keys.go("Forget it")
        keys.press("Space")
        keys.hears("The memory was forgotten.")
        keys.is_at(page.locator("#list"))
        expect(page.locator("#list")).to_contain_text("Nothing is remembered yet.")


def test_after_the_last_one_of_a_page_was_forgotten_the_rest_can_be_read(open_page: Opener, world: PageWorld) -> None:
    rows = [memory("keys-day", f"m{n}", f"Fact {n}", days=2 if n else 1) for n in range(4)]
    world.put(*rows)
    with by_keys(open_page(user="keys-day")) as keys:
        page = keys.page
        small_pages(page, 2)
        first, second = page.locator(".content").all_inner_texts()
        keys.go("Load more", backward=True)
        keys.confirm("Forget", "Forget it", backward=True)
        keys.is_at(details(page, first))
        keys.go("Load more")
        keys.press("Enter")
        keys.hears("2 more memories loaded.")
        has_cards(page, 3)
        shown = page.locator(".content").all_inner_texts()
        assert {*shown, second} == {row.content for row in rows}
        keys.is_at(details(page, shown[1]))
        for _ in range(2):  # and where a page is empty, the next one is shown
            keys.confirm("Forget", "Forget it")
            keys.hears("The memory was forgotten.")
        has_cards(page, 1)


def test_a_page_of_which_all_is_forgotten_is_followed_by_the_next(open_page: Opener, world: PageWorld) -> None:
    world.put(*many(memory("keys-next", "m", "x"), 3, lambda number: f"Fact {number}"))
    with by_keys(open_page(user="keys-next")) as keys:
        page = keys.page
        small_pages(page, 1)
        for number in range(2):
            keys.confirm("Forget", "Forget it")
            keys.hears("The memory was forgotten.")
            expect(page.locator(".content")).to_have_text(f"Fact {number + 1}")
            keys.is_at(page.locator("#list"))


def test_a_memory_is_corrected(open_page: Opener, user: str, world: PageWorld) -> None:
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        has_cards(page, 3)
        keys.go("Correct")
        keys.press("Enter")
        text = page.get_by_label("Corrected text")
        keys.is_at(text)
        keys.type(" and tea to water")
        keys.press("Escape")
        keys.is_at(card(page, "Prefers green tea to coffee").get_by_role("button", name="Correct"))
        keys.press("Enter")
        keys.is_at(text)
        keys.press("Control+A")
        keys.type("Prefers black tea")
        keys.go("Save")
        keys.press("Space")
        keys.hears("The memory was corrected.")
        keys.is_at(details(page, "Prefers black tea"))
        assert "Prefers black tea" in world.contents(user)


def test_what_a_memory_came_from_and_an_answer_are_opened(open_page: Opener, user: str, world: PageWorld) -> None:
    world.say(user, f"{user}-t", QUESTION, "A good green tea.", receipt_id=f"r-{user}-tea")
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        has_cards(page, 3)
        keys.go("Details")
        keys.press("Enter")
        opener = details(page, "Prefers green tea to coffee")
        expect(opener).to_have_attribute("aria-expanded", "true")
        expect(page.get_by_role("article").first).to_contain_text("I'd rather have green tea than coffee")
        keys.is_at(opener)
        keys.go("Show the answer")
        keys.press("Space")
        keys.is_at_button("Hide the answer")
        expect(page.locator(".answer")).to_contain_text("A good green tea.")
        keys.press("Space")
        keys.is_at_button("Show the answer")
        expect(page.locator(".answer")).to_be_hidden()
        keys.go("Details", backward=True)
        keys.press("Space")
        expect(opener).to_have_attribute("aria-expanded", "false")
        keys.is_at(opener)


def test_everything_is_forgotten(open_page: Opener, user: str, world: PageWorld) -> None:
    inside = "document.activeElement === document.body || Boolean(document.activeElement.closest('dialog'))"
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        has_cards(page, 3)
        keys.go("Forget all…")
        keys.press("Enter")
        word = page.get_by_label("Type “forget” to confirm")
        keys.is_at(word)
        for key in ("Tab",) * 4 + ("Shift+Tab",) * 5:
            keys.press(key)
            assert page.evaluate(inside), "the focus left the dialog"
        keys.press("Escape")
        keys.is_at_button("Forget all…")
        assert len(world.contents(user)) == 3
        keys.press("Space")
        keys.is_at(word)
        keys.type("forget")
        keys.press("Enter")
        keys.hears("5 memories were forgotten.")
        keys.is_at_button("Forget all…")
        assert world.contents(user) == []


def test_what_a_search_finds_is_announced_and_clear_leads_back(open_page: Opener, user: str) -> None:
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        has_cards(page, 3)
        keys.go("Search my memories")
        keys.type("which drink do I like?")
        keys.press("Enter")
        keys.hears("found.")
        keys.is_at(page.get_by_label("Search my memories"))
        expect(page.get_by_role("heading", name="Best matches first")).to_be_visible()
        keys.go("Clear")
        keys.press("Space")
        keys.hears("3 memories shown.")
        keys.is_at(page.get_by_label("Search my memories"))
        has_cards(page, 3)


def test_what_failed_is_announced_and_tried_again(open_page: Opener, user: str) -> None:
    with by_keys(open_page(user=user), expected=("ERR_INTERNET_DISCONNECTED",)) as keys:
        page = keys.page
        has_cards(page, 3)
        page.context.set_offline(True)
        keys.go("Show")
        keys.press("ArrowDown")
        keys.hears("The server cannot be reached.")
        keys.is_at(page.get_by_label("Show"))
        keys.go("Try again")
        keys.press("Enter")
        keys.hears("The server cannot be reached.")
        keys.is_at(page.locator("#list"))
        page.context.set_offline(False)
        keys.go("Try again")
        keys.press("Space")
        keys.hears("1 memory shown.")
        keys.is_at(page.locator("#list"))
        page.context.set_offline(True)
        keys.go("Forget")
        keys.press("Enter")
        keys.hears("The server cannot be reached.")
        keys.is_at_button("Forget")
        page.context.set_offline(False)


def test_a_page_that_could_not_be_opened_is_tried_again(open_page: Opener, user: str) -> None:
    with by_keys(open_page(user=user), expected=("ERR_FAILED",)) as keys:
        page = keys.page
        page.route("**/v1/memory/caller", lambda route: route.abort())
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached.")
        page.unroute("**/v1/memory/caller")
        keys.go("Try again")
        keys.press("Enter")
        has_cards(page, 3)
        keys.is_at(page.get_by_role("main"))


def test_a_page_that_only_a_proxy_can_open_says_so_where_the_focus_is(open_page: Opener) -> None:
    with by_keys(open_page(mode="header"), expected=("ERR_FAILED", "401")) as keys:
        page = keys.page
        title = page.get_by_role("heading", name="Who are you?")
        expect(title).to_be_visible()
        keys.is_at(page.get_by_role("main"))
        keys.go("Language", backward=True)
        keys.press("ArrowDown")
        expect(page.get_by_role("main")).to_contain_text("您是谁？")
        keys.is_at(page.get_by_label("语言"))
        keys.press("ArrowUp")
        expect(title).to_be_visible()
        keys.is_at(page.get_by_label("Language"))
        page.route("**/v1/memory/caller", lambda route: route.abort())
        page.reload()
        expect(page.get_by_role("alert")).to_be_visible()
        page.unroute("**/v1/memory/caller")
        keys.go("Try again")
        keys.press("Enter")
        expect(title).to_be_visible()
        keys.is_at(page.get_by_role("main"))


def test_language_theme_and_user_are_changed(open_page: Opener, user: str) -> None:
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        has_cards(page, 3)
        keys.go("Theme")
        keys.press("ArrowDown", "ArrowDown")
        keys.is_at(page.get_by_label("Theme"))
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        keys.go("Language", backward=True)
        keys.press("ArrowDown")
        expect(page.get_by_role("heading", name="我的记忆")).to_be_visible()
        keys.is_at(page.get_by_label("语言"))
        keys.press("ArrowUp")
        expect(page.get_by_role("heading", name="My memory")).to_be_visible()
        keys.is_at(page.get_by_label("Language"))
        keys.go("Change user")
        keys.press("Enter")
        keys.is_at(page.get_by_label("User id"))
        keys.type("somebody-new")
        keys.press("Enter")
        expect(page.get_by_text("Nothing is remembered yet.")).to_be_visible()
        keys.is_at(page.get_by_role("main"))


def test_a_token_that_is_refused_is_announced_and_asked_for_again(open_page: Opener) -> None:
    with by_keys(open_page(mode="jwt"), expected=("401",)) as keys:
        token = keys.page.get_by_label("Access token")
        keys.is_at(token)
        assert not any("does not know who you are" in one for one in keys.said)
        keys.type("nonsense")
        keys.press("Enter")
        keys.hears("The server does not know who you are")
        keys.is_at(token)
