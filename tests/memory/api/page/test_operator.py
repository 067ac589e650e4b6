"""The operator's page in a real browser: health, queue, dead letters and requests, without any text."""

from __future__ import annotations

import pytest
from library_parts import NOW, report
from page_users import memory, receipt
from page_world import OPERATOR, PROGRAM, PageWorld
from pages import OPERATORS_PAGE, Opener, press, tab_to
from playwright.sync_api import Page, expect

from memory.adapters.evaluation_reports import FolderOfReports

pytestmark = [
    pytest.mark.usefixtures("no_dead_letters_of_others"),
]


def number_of(page: Page, name: str) -> str:
    return page.locator("dl > div", has=page.get_by_text(name, exact=True)).locator("dd").inner_text()


def test_health_and_queue_are_shown(open_page: Opener, world: PageWorld) -> None:
    world.bury("queued", "q1", "q2")
    with open_page(OPERATORS_PAGE) as opened:
        health = opened.page.get_by_role("region", name="Health")
        expect(health.get_by_role("listitem")).to_have_text(
            [
                *("Memory storeWorks", "Turn logWorks", "Embedding modelWorks", "LearningWorks"),
                *("EnvoyCannot be seen from here", "FiltersNot running", "WorkersNot running"),
                "Model serverCannot be seen from here",
            ]
        )
        assert number_of(opened.page, "Given up") == "2"
        assert number_of(opened.page, "Being learnt") == "0"
        opened.assert_clean()


def test_reports_are_listed_and_their_figures_opened(open_page: Opener, world: PageWorld) -> None:
    with open_page(OPERATORS_PAGE) as opened:
        expect(opened.page.get_by_text("No report yet.")).to_be_visible()
        opened.assert_clean()
    reports = FolderOfReports(world.parts.settings.reports_path)
    for number in range(21):
        rows = (("all", f"0.{number}"), ("(none)", ""))
        world.run(reports.keep(report(f"recall-{number:02}", at=NOW + number, rows=rows)))
    with open_page(OPERATORS_PAGE) as opened:
        page = opened.page
        part = page.get_by_role("region", name="Evaluation reports")
        expect(part.locator("tbody tr")).to_have_count(20)
        tab_to(page, "Show figures of recall-20")
        page.keyboard.press("Enter")
        figures = page.get_by_role("group", name="Figures of recall-20")
        expect(figures.locator("td")).to_have_text(["all", "0.20", "(none)", ""])
        tab_to(page, "Load older reports")
        page.keyboard.press("Enter")
        expect(part.get_by_label("Show figures of recall-00")).to_be_visible()
        expect(page.get_by_role("group", name="Older evaluation reports")).to_be_focused()
        opened.assert_clean()


def test_requests_are_live_older_ones_can_be_loaded_and_no_text_is_shown(open_page: Opener, world: PageWorld) -> None:
    world.put(memory("live", "m", "beetroot is a memory"))
    world.keep(*(receipt("live", f"{n:02}", "live-m", query="beetroot is a question") for n in range(30)))
    with open_page(OPERATORS_PAGE, has_clock=True) as opened:
        page = opened.page
        part = page.get_by_role("region", name="Requests")
        expect(part.locator("tbody tr")).to_have_count(25)
        row = part.locator("tbody tr").first
        expect(row).to_contain_text("Used")
        row.get_by_text("Show").click()
        expect(row).to_contain_text("r-live-29")
        expect(row).to_contain_text("given 1")
        row.get_by_text("Show").click()
        page.locator("h1").click()  # what has the focus is not drawn again under the reader's hand
        world.keep(receipt("later", "one"))
        page.clock.fast_forward(6_000)
        expect(part.locator("tbody tr").first).to_contain_text("Nothing found")
        press(page, "Pause updates")
        before = len(opened.asked)
        page.clock.fast_forward(60_000)
        press(page, "Load older requests")
        expect(part.locator("tbody tr").nth(29)).to_be_attached()
        assert [one for one in opened.asked[before:] if "cursor=" not in one] == []
        assert "beetroot" not in page.content()
        opened.assert_clean()


def test_without_a_token_for_operators_nothing_is_shown(open_page: Opener, world: PageWorld) -> None:
    world.keep(receipt("hidden", "h"))
    refused = ("403", "401")
    with open_page(OPERATORS_PAGE, mode="header") as opened:
        page = opened.page
        for token in (PROGRAM, "mpt_guess", "nonsense"):
            page.get_by_label("Service token").fill(token)
            press(page, "Continue")
            expect(page.get_by_role("alert").first).to_be_visible()
            assert "hidden" not in page.inner_text("body")
        page.get_by_label("Service token").fill(OPERATOR)
        press(page, "Continue")
        expect(page.get_by_role("region", name="Requests")).to_contain_text("hidden")
        opened.assert_clean(expected=refused)
