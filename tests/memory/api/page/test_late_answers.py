"""*My memory* where answers are late or lost: the reader stays where they are, and success is not called failure."""

from __future__ import annotations

import pytest
from held_answer import HeldAnswer
from keyboard import by_keys
from page_world import PageWorld
from pages import Opener, card
from playwright.sync_api import expect

pytestmark = pytest.mark.full("one walk through each page is in the first tier")
OFFLINE = "The server cannot be reached."
STATS = "**/v1/memory/stats"


def test_who_chose_another_list_while_a_memory_is_forgotten_stays_there(
    open_page: Opener, user: str, world: PageWorld
) -> None:
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        expect(page.get_by_role("article")).to_have_count(3)
        held = HeldAnswer(page, "DELETE", "**/v1/memory/*")
        keys.confirm("Forget", "Forget it")
        held.wait()
        keys.go("Show", backward=True)
        keys.press("ArrowDown")
        keys.hears("1 memory shown.")
        held.release()
        keys.hears("The memory was forgotten.")
        keys.is_at(page.get_by_label("Show"))
        expect(page.locator(".content")).to_have_text(["Lives in Braga"])
        expect(page.locator("#summary")).to_have_text("2 current memories · 1 replaced · 1 archived")
        assert len(world.contents(user)) == 2


def test_a_memory_is_forgotten_though_it_cannot_be_counted_what_is_left(
    open_page: Opener, user: str, world: PageWorld
) -> None:
    with by_keys(open_page(user=user), expected=("ERR_FAILED",)) as keys:
        page = keys.page
        expect(page.get_by_role("article")).to_have_count(3)
        page.route(STATS, lambda route: route.abort())
        keys.confirm("Forget", "Forget it")
        keys.hears("The memory was forgotten.")
        expect(page.locator("#summary")).to_have_text("")  # rather than a number that is not true
        assert not any(OFFLINE in one for one in keys.said)
        assert len(world.contents(user)) == 2


def test_a_memory_is_restored_though_it_cannot_be_counted_what_is_current(
    open_page: Opener, user: str, world: PageWorld
) -> None:
    with by_keys(open_page(user=user), expected=("ERR_FAILED",)) as keys:
        page = keys.page
        expect(page.get_by_role("article")).to_have_count(3)
        keys.go("Show")
        keys.press("ArrowDown", "ArrowDown")
        expect(card(page, "Was looking for a used bicycle")).to_be_visible()
        page.route(STATS, lambda route: route.abort())
        keys.go("Restore")
        keys.press("Enter")
        keys.hears("The memory is current again.")
        expect(page.locator("#summary")).to_have_text("")
        assert not any(OFFLINE in one for one in keys.said)
        assert "Was looking for a used bicycle" in world.contents(user)
