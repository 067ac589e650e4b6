"""When a memory was used, in a real browser: each use leads to its answer and to its receipt."""

from __future__ import annotations

import pytest
from page_users import QUESTION
from page_world import PageWorld
from pages import Opener, accessibility_faults, card
from playwright.sync_api import expect

pytestmark = pytest.mark.full("one walk through each page is in the first tier")


def test_a_use_leads_to_its_answer_and_to_its_receipt(open_page: Opener, user: str, world: PageWorld) -> None:
    world.say(user, f"{user}-t", QUESTION, "A good *green* tea, <b>of course</b>.", receipt_id=f"r-{user}-tea")
    world.say("stranger", f"{user}-s", QUESTION, "The stranger's answer", receipt_id=f"r-{user}-tea")
    with open_page(user=user) as opened:
        tea = card(opened.page, "Prefers green tea to coffee")
        tea.get_by_role("button", name="Details").click()
        opener = tea.get_by_role("button", name="Show the answer")
        expect(opener).to_have_attribute("aria-expanded", "false")
        opener.click()
        answer = tea.locator(".answer")
        expect(answer.locator("blockquote")).to_have_text([QUESTION, "A good *green* tea, <b>of course</b>."])
        expect(answer).to_contain_text("Found for this question")
        expect(answer.locator(".lines li")).to_have_text(["Prefers green tea to coffeefor this question"])
        expect(answer.locator("dl")).to_contain_text("12 ms")
        assert accessibility_faults(opened.page) == []
        tea.get_by_role("button", name="Hide the answer").click()
        expect(answer).to_be_hidden()
        opened.assert_clean()


def test_a_use_whose_chat_was_deleted_still_shows_its_receipt(open_page: Opener, user: str) -> None:
    with open_page(user=user) as opened:
        tea = card(opened.page, "Prefers green tea to coffee")
        tea.get_by_role("button", name="Details").click()
        tea.get_by_role("button", name="Show the answer").click()
        expect(tea.locator(".answer")).to_contain_text("The conversation record does not hold this chat any more.")
        expect(tea.locator(".answer")).to_contain_text("Found for this question")
        opened.assert_clean(expected=("404",))
