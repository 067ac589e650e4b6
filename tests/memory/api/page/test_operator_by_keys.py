"""The operator's page without a mouse: each action by keys alone, where the focus is then, and what is announced."""

from __future__ import annotations

import pytest
from held_answer import HeldAnswer
from keyboard import Keys, by_keys
from page_users import receipt
from page_world import OPERATOR, PROGRAM, PageWorld
from pages import OPERATORS_PAGE, Opener
from playwright.sync_api import Locator, expect

pytestmark = [
    pytest.mark.full("one walk through each page is in the first tier"),
    pytest.mark.usefixtures("no_dead_letters_of_others"),
]
OFFLINE = "The server cannot be reached."


def part(keys: Keys, name: str) -> Locator:
    return keys.page.get_by_role("region", name=name)


def place(keys: Keys, name: str) -> Locator:
    return part(keys, name).locator(".place")


def has_letters(keys: Keys, count: int) -> None:
    expect(part(keys, "Dead letters").locator("tbody tr")).to_have_count(count)


def letters(keys: Keys, world: PageWorld, count: int) -> list[str]:
    """Ids of the dead letters, as the page shows them."""
    has_letters(keys, count)
    return [one.window_id for one in world.run(world.parts.state.turn_log.dead_letters(limit=9))]


def refresh(keys: Keys) -> None:
    """Twice, so that the page has used the first answer by the time the second is there."""
    for _ in range(2):
        with keys.page.expect_response("**/operator/dead-letters"):
            keys.page.clock.fast_forward(6_000)


def test_dead_letters_are_dropped_one_after_the_other(open_page: Opener, world: PageWorld) -> None:
    world.bury("drop-keys", "d1", "d2", "d3")
    with by_keys(open_page(OPERATORS_PAGE)) as keys:
        first, second, third = letters(keys, world, 3)
        keys.go(f"Drop dead letter {second}")
        keys.press("Enter")
        keys.is_at_button("Cancel")
        keys.press("Escape")
        keys.is_at_button(f"Drop dead letter {second}")
        assert letters(keys, world, 3) == [first, second, third]
        for letter, left in ((second, [first, third]), (third, [first])):
            keys.is_at_button(f"Drop dead letter {letter}")
            keys.press("Space")
            keys.is_at_button("Cancel")
            keys.go("Drop")
            keys.press("Enter")
            keys.hears("1 dead letter was dropped.")
            keys.is_at_button(f"Drop dead letter {left[-1]}")  # what stands in its place, or above it
            assert letters(keys, world, len(left)) == left
        keys.press("Enter")
        keys.is_at_button("Cancel")
        keys.go("Drop")
        keys.press("Space")
        keys.hears("1 dead letter was dropped.")
        keys.is_at(place(keys, "Dead letters"))
        expect(place(keys, "Dead letters")).to_have_text("No turns were given up.")


def test_a_letter_that_comes_while_a_question_is_open_waits_for_the_answer(open_page: Opener, world: PageWorld) -> None:
    world.bury("wait-keys", "w1", "w2")
    with by_keys(open_page(OPERATORS_PAGE, has_clock=True)) as keys:
        _, second = letters(keys, world, 2)
        keys.go(f"Drop dead letter {second}")
        keys.press("Enter")
        keys.is_at_button("Cancel")
        world.bury("wait-keys", "w3")
        refresh(keys)
        keys.press("Enter")
        keys.is_at_button(f"Drop dead letter {second}")
        has_letters(keys, 2)
        keys.go("Pause updates", backward=True)
        refresh(keys)
        has_letters(keys, 3)
        keys.is_at_button("Pause updates")


def test_what_fails_while_a_question_is_open_is_announced_after_the_answer(open_page: Opener, world: PageWorld) -> None:
    world.bury("fail-keys", "f1")
    with by_keys(open_page(OPERATORS_PAGE, has_clock=True), expected=("ERR_FAILED",)) as keys:
        page = keys.page
        (letter,) = letters(keys, world, 1)
        keys.go(f"Drop dead letter {letter}")
        keys.press("Enter")
        keys.is_at_button("Cancel")
        page.route("**/operator/dead-letters", lambda route: route.abort())
        for _ in range(2):
            with page.expect_event("requestfailed"):
                page.clock.fast_forward(6_000)
        keys.press("Escape")
        keys.is_at_button(f"Drop dead letter {letter}")
        page.clock.fast_forward(6_000)
        keys.hears(OFFLINE)
        keys.is_at(place(keys, "Dead letters"))


def test_after_a_drop_the_focus_is_at_the_next_letter_whatever_else_is_gone(
    open_page: Opener, world: PageWorld
) -> None:
    world.bury("other-keys", "o1", "o2", "o3", "o4")
    with by_keys(open_page(OPERATORS_PAGE)) as keys:
        first, second, third, _ = letters(keys, world, 4)
        keys.go(f"Drop dead letter {second}")
        keys.press("Enter")
        keys.is_at_button("Cancel")
        world.run(world.parts.state.turn_log.drop([first]))  # by somebody else
        keys.go("Drop")
        keys.press("Enter")
        keys.hears("1 dead letter was dropped.")
        has_letters(keys, 2)
        keys.is_at_button(f"Drop dead letter {third}")


def test_a_cancelled_question_about_a_letter_that_was_drawn_again_leads_to_its_part(
    open_page: Opener, world: PageWorld
) -> None:
    world.bury("again-keys", "a1", "a2")
    with by_keys(open_page(OPERATORS_PAGE)) as keys:
        first, second = letters(keys, world, 2)
        held = HeldAnswer(keys.page, "POST", "**/dead-letters/drop")
        keys.confirm(f"Drop dead letter {first}", "Drop")
        held.wait()
        keys.go(f"Drop dead letter {second}")
        keys.press("Enter")
        keys.is_at_button("Cancel")
        held.release()
        has_letters(keys, 1)
        keys.is_at_button("Cancel")
        keys.press("Escape")
        keys.is_at(place(keys, "Dead letters"))


def test_a_letter_is_not_drawn_again_under_the_hand_where_a_refresh_showed_the_drop_first(
    open_page: Opener, world: PageWorld
) -> None:
    world.bury("late-keys", "l1", "l2")
    with by_keys(open_page(OPERATORS_PAGE, has_clock=True)) as keys:
        first, second = letters(keys, world, 2)
        held = HeldAnswer(keys.page, "POST", "**/dead-letters/drop")
        keys.confirm(f"Drop dead letter {first}", "Drop")
        held.wait()
        keys.go("Pause updates", backward=True)
        refresh(keys)
        has_letters(keys, 1)
        held.release()
        keys.hears("1 dead letter was dropped.")
        keys.is_at_button(f"Drop dead letter {second}")
        world.bury("late-keys", "l3")
        refresh(keys)
        keys.is_at_button(f"Drop dead letter {second}")
        has_letters(keys, 1)


def test_dead_letters_are_replayed_one_by_one_and_all_at_once(open_page: Opener, world: PageWorld) -> None:
    world.bury("replay-keys", "r1", "r2", "r3")
    with by_keys(open_page(OPERATORS_PAGE)) as keys:
        first, second, third = letters(keys, world, 3)
        keys.go(f"Replay dead letter {first}")
        keys.press("Space")
        keys.hears("1 dead letter will be learnt again.")
        keys.is_at_button(f"Replay dead letter {second}")
        assert letters(keys, world, 2) == [second, third]
        keys.go("Replay all 2")
        keys.press("Enter")
        keys.is_at_button("Cancel")
        keys.press("Enter")
        keys.is_at_button("Replay all 2")
        keys.press("Enter")
        keys.is_at_button("Cancel")
        keys.go("Replay")
        keys.press("Enter")
        keys.hears("2 dead letters will be learnt again.")
        keys.is_at(place(keys, "Dead letters"))
        assert letters(keys, world, 0) == []


def test_updates_are_paused_and_resumed(open_page: Opener) -> None:
    with by_keys(open_page(OPERATORS_PAGE, has_clock=True)) as keys:
        expect(place(keys, "Requests").locator(".loading")).to_have_count(0)
        keys.go("Pause updates")
        keys.press("Enter")
        keys.hears("Updates are paused.")
        keys.is_at_button("Resume updates")
        keys.press("Space")
        keys.hears("The page updates every five seconds.")
        keys.is_at_button("Pause updates")
        with keys.page.expect_response("**/operator/queue"):
            keys.page.clock.fast_forward(6_000)


def test_older_requests_are_loaded_and_receipts_opened(open_page: Opener, world: PageWorld) -> None:
    world.keep(*(receipt("old-keys", f"{n:02}") for n in range(30)))
    with by_keys(open_page(OPERATORS_PAGE, has_clock=True)) as keys:
        page = keys.page
        expect(part(keys, "Requests").locator("tbody tr")).to_have_count(25)
        keys.go("Load older requests")
        keys.press("Enter")
        keys.hears("Updates are paused.")
        older = page.get_by_role("group", name="Older requests").first
        keys.is_at(older)
        expect(page.get_by_role("button", name="Resume updates")).to_be_visible()
        keys.press("Tab")
        receipt_of_first = older.locator("summary").first
        keys.is_at(receipt_of_first)
        keys.press("Space")
        expect(older.locator("details[open]")).to_contain_text("search 6.1 ms")
        keys.is_at(receipt_of_first)
        keys.go("Resume updates", limit=100)
        keys.press("Enter")
        keys.hears("The page updates every five seconds.")
        with page.expect_response("**/operator/queue"):
            page.clock.fast_forward(6_000)


def test_a_failure_is_announced_once_and_the_focus_stays_in_its_part(open_page: Opener, world: PageWorld) -> None:
    world.keep(receipt("failing-keys", "f"))
    with by_keys(open_page(OPERATORS_PAGE, has_clock=True), expected=("ERR_INTERNET_DISCONNECTED",)) as keys:
        page = keys.page
        keys.go("Show receipt r-failing-keys-f")
        page.context.set_offline(True)
        page.clock.fast_forward(6_000)
        expect(page.get_by_role("alert")).to_have_count(5)
        keys.is_at(place(keys, "Requests"))
        assert sum(OFFLINE in one for one in keys.said) == 5
        with page.expect_event("requestfailed", lambda request: request.url.endswith("/operator/queue")):
            page.clock.fast_forward(6_000)
        keys.go("Try again")
        keys.press("Enter")
        keys.is_at(place(keys, "Requests"))
        expect(place(keys, "Requests").get_by_role("alert")).to_be_visible()
        assert sum(OFFLINE in one for one in keys.said) == 6, "again only because it was asked for"
        page.context.set_offline(False)
        keys.go("Try again")
        keys.press("Space")
        expect(place(keys, "Requests").locator("tbody tr").first).to_be_visible()
        keys.is_at(place(keys, "Requests"))
        page.clock.fast_forward(6_000)
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_token_that_is_refused_is_announced_and_asked_for_again(open_page: Opener) -> None:
    with by_keys(open_page(OPERATORS_PAGE, mode="header"), expected=("403", "401")) as keys:
        token = keys.page.get_by_label("Service token")
        keys.is_at(token)
        keys.type(PROGRAM)
        keys.press("Enter")
        keys.hears("The server refused this")
        keys.is_at(token)
        expect(token).to_have_value("")
        keys.type(OPERATOR)
        keys.press("Enter")
        expect(part(keys, "Requests")).to_be_visible()
        keys.is_at(keys.page.get_by_role("main"))
