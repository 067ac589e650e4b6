"""The operator's page in a real browser: one walk by keys alone, without any text of a user; and what may go wrong.

After each action it is checked where the focus is and what is announced.
"""

from __future__ import annotations

import math

import pytest
from keyboard import HeldAnswer, Keys, by_keys
from library_parts import NOW, report
from page_world import OPERATOR, PROGRAM, PageWorld, memory, receipt
from pages import OPERATORS_PAGE, Opener
from playwright.sync_api import Locator, expect

from memory.adapters.evaluation_reports import FolderOfReports

pytestmark = pytest.mark.usefixtures("no_dead_letters_of_others")
otherwise = pytest.mark.full("one walk through each page is in the first tier")
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


@pytest.mark.slow("the only walk through this page in the first tier")
def test_every_action_can_be_used_by_keys_alone(open_page: Opener, world: PageWorld) -> None:
    world.bury("operated", *(f"operated-{n}" for n in range(4)))
    world.put(memory("operated", "m", "beetroot is a memory"))
    world.keep(*(receipt("operated", f"{n:02}", "operated-m", query="beetroot is a question") for n in range(30)))
    reports = FolderOfReports(world.parts.settings.reports_path)
    for number in range(21):
        rows = (("all", f"0.{number}"), ("(none)", ""))
        world.run(reports.keep(report(f"recall-{number:02}", at=NOW + number, rows=rows)))
    with by_keys(open_page(OPERATORS_PAGE, has_clock=True)) as keys:
        see_health_and_queue(keys)
        drop_and_replay(keys, world)
        load_older_requests(keys)
        pause_and_resume(keys, world)
        open_reports(keys)
        assert "beetroot" not in keys.page.content()


def see_health_and_queue(keys: Keys) -> None:
    expect(part(keys, "Health").get_by_role("listitem")).to_have_text(
        [
            *("Memory storeWorks", "Turn logWorks", "Embedding modelWorks", "LearningWorks"),
            *("EnvoyCannot be seen from here", "FiltersNot running", "WorkersNot running"),
            "Model serverCannot be seen from here",
        ]
    )
    for name, number in (("Given up", "4"), ("Being learnt", "0")):
        figure = keys.page.locator("dl > div", has=keys.page.get_by_text(name, exact=True)).locator("dd")
        expect(figure).to_have_text(number)


def drop_and_replay(keys: Keys, world: PageWorld) -> None:
    """The focus is then at what stands in the place of the letter, or above it."""
    first, second, third, fourth = letters(keys, world, 4)
    keys.use(f"Drop dead letter {second}", "Enter", then_at="Cancel")
    keys.press("Escape", then_at=f"Drop dead letter {second}")
    assert letters(keys, world, 4) == [first, second, third, fourth]
    keys.press("Space", then_at="Cancel")
    keys.use("Drop", "Enter", hears="1 dead letter was dropped.", then_at=f"Drop dead letter {third}")
    keys.use(f"Replay dead letter {fourth}", "Space", hears="1 dead letter will be learnt again.")
    keys.is_at(f"Replay dead letter {third}")
    assert letters(keys, world, 2) == [first, third]
    keys.use("Replay all 2", "Enter", backward=True, then_at="Cancel")
    keys.press("Enter", then_at="Replay all 2")
    keys.press("Enter", then_at="Cancel")
    keys.use("Replay", "Enter", hears="2 dead letters will be learnt again.", then_at=place(keys, "Dead letters"))
    expect(place(keys, "Dead letters")).to_have_text("No turns were given up.")
    assert letters(keys, world, 0) == []
    world.run(world.parts.state.turn_log.withdraw("operated", opened_before=math.inf))  # nobody learns it here


def load_older_requests(keys: Keys) -> None:
    """Updates are paused meanwhile."""
    rows = part(keys, "Requests").locator("tbody tr")
    expect(rows).to_have_count(25)
    expect(rows.first).to_contain_text("Used")
    keys.use("Load older requests", "Enter", hears="Updates are paused.")
    older = keys.page.get_by_role("group", name="Older requests").first
    keys.is_at(older)
    before = len(keys.asked)
    keys.page.clock.fast_forward(60_000)
    keys.press("Tab", then_at=older.locator("summary").first)
    keys.press("Space")
    expect(older.locator("details[open]")).to_contain_text("search 6.1 ms")
    expect(older.locator("details[open]")).to_contain_text("r-operated-")
    assert keys.asked[before:] == []
    keys.use("Resume updates", "Enter", hears="The page updates every five seconds.", limit=100)


def pause_and_resume(keys: Keys, world: PageWorld) -> None:
    newest = part(keys, "Requests").locator("tbody tr").first
    keys.is_at("Pause updates")
    keys.press("Enter", hears="Updates are paused.")
    world.keep(receipt("later", "one"))
    keys.page.clock.fast_forward(60_000)
    expect(newest).to_contain_text("Used")
    keys.is_at("Resume updates")
    keys.press("Space", hears="The page updates every five seconds.")
    keys.page.clock.fast_forward(6_000)
    expect(newest).to_contain_text("Nothing found")


def open_reports(keys: Keys) -> None:
    rows = part(keys, "Evaluation reports").locator("tbody tr")
    expect(rows).to_have_count(20)
    keys.use("Show figures of recall-20", "Enter", limit=100)
    figures = keys.page.get_by_role("group", name="Figures of recall-20")
    expect(figures.locator("td")).to_have_text(["all", "0.20", "(none)", ""])
    keys.use("Load older reports", "Enter")
    expect(part(keys, "Evaluation reports").get_by_label("Show figures of recall-00")).to_be_visible()
    keys.is_at(keys.page.get_by_role("group", name="Older evaluation reports"))


@otherwise
def test_a_letter_that_comes_while_a_question_is_open_waits_for_the_answer(open_page: Opener, world: PageWorld) -> None:
    world.bury("wait-keys", "w1", "w2")
    with by_keys(open_page(OPERATORS_PAGE, has_clock=True)) as keys:
        _, second = letters(keys, world, 2)
        keys.use(f"Drop dead letter {second}", "Enter", then_at="Cancel")
        world.bury("wait-keys", "w3")
        refresh(keys)
        keys.press("Enter", then_at=f"Drop dead letter {second}")
        has_letters(keys, 2)
        keys.go("Pause updates", backward=True)
        refresh(keys)
        has_letters(keys, 3)
        keys.is_at("Pause updates")


@otherwise
def test_after_a_drop_the_focus_is_at_the_next_letter_that_is_left(open_page: Opener, world: PageWorld) -> None:
    world.bury("other-keys", "o1", "o2", "o3", "o4")
    with by_keys(open_page(OPERATORS_PAGE)) as keys:
        first, second, third, _ = letters(keys, world, 4)
        keys.use(f"Drop dead letter {second}", "Enter", then_at="Cancel")
        world.run(world.parts.state.turn_log.drop([first]))  # by somebody else
        keys.use("Drop", "Enter", hears="1 dead letter was dropped.")
        has_letters(keys, 2)
        keys.is_at(f"Drop dead letter {third}")


@otherwise
def test_a_letter_is_not_drawn_again_where_a_refresh_showed_the_drop_first(open_page: Opener, world: PageWorld) -> None:
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
        keys.is_at(f"Drop dead letter {second}")
        world.bury("late-keys", "l3")
        refresh(keys)
        keys.is_at(f"Drop dead letter {second}")
        has_letters(keys, 1)


@otherwise
def test_a_failure_is_announced_once_and_the_focus_stays_in_its_part(open_page: Opener, world: PageWorld) -> None:
    world.keep(receipt("failing-keys", "f"))
    with by_keys(open_page(OPERATORS_PAGE, has_clock=True, expected=("ERR_INTERNET_DISCONNECTED",))) as keys:
        page = keys.page
        keys.go("Show receipt r-failing-keys-f")
        page.context.set_offline(True)
        page.clock.fast_forward(6_000)
        expect(page.get_by_role("alert")).to_have_count(5)
        keys.is_at(place(keys, "Requests"))
        assert sum(OFFLINE in one for one in keys.said) == 5
        with page.expect_event("requestfailed", lambda request: request.url.endswith("/operator/queue")):
            page.clock.fast_forward(6_000)
        keys.use("Try again", "Enter", then_at=place(keys, "Requests"))
        expect(place(keys, "Requests").get_by_role("alert")).to_be_visible()
        assert sum(OFFLINE in one for one in keys.said) == 6, "again only because it was asked for"
        page.context.set_offline(False)
        keys.use("Try again", "Space")
        expect(place(keys, "Requests").locator("tbody tr").first).to_be_visible()
        keys.is_at(place(keys, "Requests"))
        page.clock.fast_forward(6_000)
        expect(page.get_by_role("alert")).to_have_count(0)


@otherwise
def test_a_token_that_is_refused_is_announced_and_shows_nothing(open_page: Opener, world: PageWorld) -> None:
    world.keep(receipt("hidden", "h"))
    with by_keys(open_page(OPERATORS_PAGE, mode="header", expected=("403", "401"))) as keys:
        token = keys.page.get_by_label("Service token")
        keys.is_at(token)
        for refused, said in ((PROGRAM, "The server refused this"), ("mpt_guess", ""), ("nonsense", "")):
            keys.enter(refused)
            keys.hears(said)  # whatever it is
            expect(keys.page.get_by_role("alert").first).to_be_visible()
            keys.is_at(token)
            expect(token).to_have_value("")
            assert "hidden" not in keys.page.inner_text("body")
        keys.enter(OPERATOR)
        expect(part(keys, "Requests")).to_contain_text("hidden")
        keys.is_at(keys.page.get_by_role("main"))
