"""*My memory* where a list is long, something fails, is late or has changed meanwhile, or where nobody is known yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from keyboard import HeldAnswer, by_keys
from page_world import PageWorld, fill, many, memory, receipt
from pages import OPERATORS_PAGE, Opener, card, details, press
from playwright.sync_api import Page, Route, expect

from memory.model import Evidence, Scope
from memory.service.requests import MemoryEdit

pytestmark = pytest.mark.full("one walk through each page is in the first tier")
OFFLINE = "The server cannot be reached."
COUNTS_OF_HARM = "[window.harm, document.querySelectorAll('main img, main b, main script').length]"


def has_cards(page: Page, count: int) -> None:
    expect(page.get_by_role("article")).to_have_count(count)


# Long lists


def small_pages(page: Page, limit: int) -> None:
    """Lists come in pages of so many memories, from the next one on."""

    def smaller(route: Route) -> None:
        route.continue_(url=route.request.url.replace("limit=30", f"limit={limit}"))

    page.route("**/v1/memory?*limit=30*", smaller)
    page.reload()
    has_cards(page, limit)


def test_more_of_a_long_list_is_loaded(open_page: Opener, world: PageWorld) -> None:
    world.put(*many(memory("keys-many", "m", "x"), 65, lambda number: f"Fact {number:02}"))
    with by_keys(open_page(user="keys-many")) as keys:
        page = keys.page
        has_cards(page, 30)
        keys.use("Load more", "Enter", hears="30 more memories loaded.", backward=True)
        keys.is_at(details(page, "Fact 30"))
        keys.use("Load more", "Space", hears="5 more memories loaded.", limit=100, then_at=details(page, "Fact 60"))
        expect(page.get_by_role("button", name="Load more")).to_have_count(0)


def test_after_the_last_one_of_a_page_was_forgotten_the_rest_can_be_read(open_page: Opener, world: PageWorld) -> None:
    rows = [memory("keys-day", f"m{n}", f"Fact {n}", days=2 if n else 1) for n in range(4)]
    world.put(*rows)
    with by_keys(open_page(user="keys-day")) as keys:
        page = keys.page
        small_pages(page, 2)
        first, second = page.locator(".content").all_inner_texts()
        keys.go("Load more", backward=True)
        keys.confirm("Forget", "Forget it", backward=True, then_at=details(page, first))
        keys.use("Load more", "Enter", hears="2 more memories loaded.")
        has_cards(page, 3)
        shown = page.locator(".content").all_inner_texts()
        assert {*shown, second} == {row.content for row in rows}
        keys.is_at(details(page, shown[1]))
        for _ in range(2):  # and where a page is empty, the next one is shown
            keys.confirm("Forget", "Forget it", hears="The memory was forgotten.")
        has_cards(page, 1)


# Facts of one sentence


def test_facts_of_a_sentence_are_one_block_until_one_is_forgotten_and_takes_its_words_along(
    open_page: Opener, world: PageWorld
) -> None:
    said, user = "We keep bees, I dive and I row.", "keys-sentence"
    facts = ("We keep bees", "I dive", "I row")
    world.put(
        *(memory(user, fact[-4:], fact, evidence=(Evidence(said, "t", clause=fact),)) for fact in facts),
        memory(user, "tea", "I drink tea", days=2, evidence=(Evidence("I drink tea", "u"),)),
    )
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        has_cards(page, 4)
        block = page.get_by_role("list", name=said)
        assert block.locator(".content").all_inner_texts() == [*facts]
        expect(page.get_by_text(said)).to_have_count(1)
        for name in ("Details", "Correct", "Forget"):
            expect(block.get_by_role("button", name=name)).to_have_count(3)
        details(page, "I dive").focus()
        keys.press("Enter")
        expect(card(page, "I dive").locator(".quotes")).to_contain_text(said)
        details(page, "We keep bees").focus()
        keys.confirm("Forget", "Forget it", then_at=details(page, "I dive"))
        expect(card(page, "I dive").locator(".quotes blockquote")).to_have_text("I dive")
        expect(page.get_by_text("bees")).to_have_count(0)
        assert page.locator(".content").all_inner_texts() == ["I dive", "I row", "I drink tea"]


def test_a_sentence_that_a_page_cuts_goes_on_in_the_next_one(open_page: Opener, world: PageWorld) -> None:
    said, facts = "We keep bees, I dive, I row and I sing.", ("We keep bees", "I dive", "I row", "I sing")
    quotes = [Evidence(said, "t", clause=fact) for fact in facts]
    world.put(*(memory("keys-cut", one.clause[-4:], one.clause, evidence=(one,)) for one in quotes))
    with by_keys(open_page(user="keys-cut")) as keys:
        page = keys.page
        small_pages(page, 2)
        keys.use("Load more", "Enter", backward=True)
        has_cards(page, 4)
        keys.is_at(details(page, "We keep bees"))
        blocks = page.get_by_role("list", name=said)
        shown = [one.locator(".content").all_inner_texts() for one in blocks.all()]
        assert shown == [["I row", "I sing"], ["We keep bees", "I dive"]]


# What was asked of memory in chats

OUTCOMES: list[tuple[dict[str, Any], list[str]]] = [  # the latest first
    ({"kept": 1}, ["1 memory kept"]),
    ({"forgot": ["a", "b"], "count": 2, "kept": 3}, ["3 memories kept", "2 memories deleted"]),
    (
        {"forgot": [], "count": 0, "reason": "nothing_matched", "similar": ["c"]},
        ["Nothing found to delete", "1 similar memory was kept: forget it below if you meant it"],
    ),
    ({"withheld": True, "corrections": 1}, ["Not stored, as you asked"]),
    (
        {"refused": {"secret": 2, "of_tomorrow": 1}},
        ["2 not done: it has a secret, such as a password or a card number", "Not done: of tomorrow"],
    ),
    ({"refused": {"framed": 1}}, ["Not done: it was said in a role, or stood in somebody else's text"]),
]


def test_what_became_of_what_was_asked_is_shown_without_words(open_page: Opener, user: str, world: PageWorld) -> None:
    said = "Forget my locker number"
    for number, (outcome, _) in enumerate(OUTCOMES[::-1]):
        world.keep(replace(receipt(user, f"asked-{number}", query=said), outcome=outcome))
    with by_keys(open_page(user=user, expected=("ERR_INTERNET_DISCONNECTED",))) as keys:
        page, part = keys.page, keys.page.locator("details")
        has_cards(page, 3)
        page.context.set_offline(True)
        keys.use("What you asked of memory", "Enter", hears=OFFLINE)
        page.context.set_offline(False)
        keys.use("Try again", "Enter")
        expect(part.locator("li")).to_have_count(len(OUTCOMES))
        assert [one.locator("span:not(.hint)").all_inner_texts() for one in part.locator("li").all()] == [
            texts for _, texts in OUTCOMES
        ]
        expect(part).not_to_contain_text("locker")
        world.run(world.parts.stores.receipts.erase(user))
        keys.use("What you asked of memory", "Enter", "Enter", backward=True)
        expect(part).to_contain_text("No chat of the last days asked memory")


# Failures, and answers that are late


def test_what_failed_is_announced_and_tried_again(open_page: Opener, user: str) -> None:
    with by_keys(open_page(user=user, expected=("ERR_INTERNET_DISCONNECTED",))) as keys:
        page = keys.page
        has_cards(page, 3)
        page.context.set_offline(True)
        keys.use("Show", "ArrowDown", hears=OFFLINE, then_at=page.get_by_label("Show"))
        keys.use("Try again", "Enter", hears=OFFLINE, then_at=page.locator("#list"))
        page.context.set_offline(False)
        keys.use("Try again", "Space", hears="1 memory shown.", then_at=page.locator("#list"))
        page.context.set_offline(True)
        keys.use("Forget", "Enter", hears=OFFLINE, then_at="Forget")
        page.context.set_offline(False)


def test_who_chose_another_list_meanwhile_stays_there(open_page: Opener, user: str, world: PageWorld) -> None:
    with by_keys(open_page(user=user)) as keys:
        page = keys.page
        has_cards(page, 3)
        held = HeldAnswer(page, "DELETE", "**/v1/memory/*")
        keys.confirm("Forget", "Forget it")
        held.wait()
        keys.use("Show", "ArrowDown", hears="1 memory shown.", backward=True)
        held.release()
        keys.hears("The memory was forgotten.")
        keys.is_at(page.get_by_label("Show"))
        expect(page.locator(".content")).to_have_text(["Lives in Braga"])
        expect(page.locator("#summary")).to_have_text("2 current memories · 1 replaced · 1 archived")
        assert len(world.contents(user)) == 2


def test_success_is_no_failure_where_nobody_counts_what_is_left(open_page: Opener, user: str, world: PageWorld) -> None:
    with by_keys(open_page(user=user, expected=("ERR_FAILED",))) as keys:
        page = keys.page
        has_cards(page, 3)
        keys.use("Show", "ArrowDown", "ArrowDown")
        expect(card(page, "Was looking for a used bicycle")).to_be_visible()
        page.route("**/v1/memory/stats", lambda route: route.abort())
        keys.use("Restore", "Enter", hears="The memory is current again.")
        expect(page.locator("#summary")).to_have_text("")  # rather than a number that is not true
        assert "Was looking for a used bicycle" in world.contents(user)
        keys.confirm("Forget", "Forget it", hears="The memory was forgotten.")
        expect(page.locator("#summary")).to_have_text("")
        assert not any(OFFLINE in one for one in keys.said)
        assert "Was looking for a used bicycle" not in world.contents(user)


# What others change meanwhile


def say_otherwise(world: PageWorld, user: str, content: str, to: str) -> None:
    """Somebody else's correction, or a chat that learnt better."""
    library = world.parts.library()
    (found,) = [one for one in world.run(library.page(Scope(user))).items if one.content == content]
    world.run(library.patch(user, found.id, MemoryEdit(content=to)))


def test_what_changed_meanwhile_is_shown_and_not_forgotten(open_page: Opener, user: str, world: PageWorld) -> None:
    with open_page(user=user, expected=("412",)) as page:
        expect(card(page, "Lives in Porto")).to_be_visible()
        say_otherwise(world, user, "Lives in Porto", "Lives in Faro")
        card(page, "Lives in Porto").get_by_role("button", name="Forget").click()
        expect(page.get_by_text("changed in the meantime")).to_be_visible()
        expect(details(page, "Lives in Faro")).to_be_focused()
        expect(page.get_by_role("dialog")).to_have_count(0)
        card(page, "Lives in Faro").get_by_role("button", name="Forget").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        say_otherwise(world, user, "Lives in Faro", "Lives in Evora")  # behind the question
        press(page, "Forget it")
        expect(page.get_by_text("changed in the meantime")).to_be_visible()
        expect(card(page, "Lives in Evora")).to_be_visible()
        assert "Lives in Evora" in world.contents(user)


def test_a_correction_overwrites_nothing_that_was_not_seen(open_page: Opener, user: str, world: PageWorld) -> None:
    with open_page(user=user, expected=("412",)) as page:
        text = page.get_by_label("Corrected text")
        expect(card(page, "Lives in Porto")).to_be_visible()
        say_otherwise(world, user, "Lives in Porto", "Lives in Faro")
        card(page, "Lives in Porto").get_by_role("button", name="Correct").click()
        expect(page.get_by_role("alert")).to_contain_text("is now: “Lives in Faro”")  # it begins with that
        text.fill("Lives in Lisbon")
        say_otherwise(world, user, "Lives in Faro", "Lives in Evora")
        press(page, "Save")
        expect(page.get_by_role("alert")).to_contain_text("is now: “Lives in Evora”")
        assert "Lives in Evora" in world.contents(user)
        expect(text).to_have_value("Lives in Lisbon")
        library = world.parts.library()
        (found,) = [one for one in world.run(library.page(Scope(user))).items if one.content == "Lives in Evora"]
        world.put(replace(found, access_count=found.access_count + 1))  # a use in a chat does not stand in the way
        press(page, "Save")
        expect(card(page, "Lives in Lisbon")).to_be_visible()
        assert "Lives in Evora" not in world.contents(user)


def test_a_use_whose_chat_was_deleted_still_shows_its_receipt(open_page: Opener, user: str, world: PageWorld) -> None:
    world.keep(replace(receipt(user, "asked", f"{user}-tea", hours=1.0), outcome={"kept": 2, "withheld": True}))
    with open_page(user=user, expected=("404",)) as page:
        tea = card(page, "Prefers green tea to coffee")
        tea.get_by_role("button", name="Details").click()
        tea.get_by_role("button", name="Show the answer").first.click()
        answer = tea.locator(".answer").first
        expect(answer).to_contain_text("The conversation record does not hold this chat any more.")
        expect(answer).to_contain_text("Found for this question")
        expect(answer).to_contain_text("2 memories kept · Not stored, as you asked")


def test_what_looks_like_html_is_shown_as_text_everywhere(open_page: Opener, world: PageWorld) -> None:
    attack = '<img src=x onerror="window.harm = 1"><script>window.harm = 1</script>'
    name = "<b onclick=window.harm=1>xss</b>"
    world.put(memory("xss", "m", attack, project_id=name), memory("xss", "old", attack, days=9))
    world.keep(receipt("xss", "r", "xss-m", query=attack))
    world.bury("xss", "xss-turn", reason=attack)
    with open_page(user="xss") as page:
        tags = card(page, attack).first
        expect(tags).to_contain_text(f"Project {name}")
        tags.get_by_role("button", name="Details").click()
        expect(tags).to_contain_text("When it was used")
        tags.get_by_role("button", name="Forget").click()
        expect(page.get_by_role("dialog")).to_contain_text(attack)
        assert page.evaluate(COUNTS_OF_HARM) == [None, 0]
    with open_page(OPERATORS_PAGE) as page:
        expect(page.get_by_role("region", name="Dead letters")).to_contain_text(attack)
        assert page.evaluate(COUNTS_OF_HARM) == [None, 0]


# Who it is, and how they read


def test_language_theme_and_user_are_changed_and_stay(open_page: Opener, user: str, world: PageWorld) -> None:
    fill(world, "用户-小林")
    with by_keys(open_page(user=user, color_scheme="light")) as keys:
        page = keys.page
        has_cards(page, 3)
        keys.use("Theme", "ArrowDown", "ArrowDown", then_at=page.get_by_label("Theme"))
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        keys.use("Change user", "Enter", then_at=page.get_by_label("User id"))
        page.keyboard.insert_text("用户-小林")
        keys.press("Enter")
        has_cards(page, 3)
        keys.is_at(page.get_by_role("main"))
        keys.use("Language", "ArrowDown", backward=True, then_at=page.get_by_label("语言"))
        page.reload()
        expect(page.get_by_role("heading", name="我的记忆")).to_be_visible()
        expect(page.locator(".day h2").first).to_contain_text("年")
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_a_page_that_only_a_proxy_can_open_says_so_where_the_focus_is(open_page: Opener) -> None:
    with by_keys(open_page(mode="header", expected=("ERR_FAILED", "401"))) as keys:
        page = keys.page
        title = page.get_by_role("heading", name="Who are you?")
        expect(title).to_be_visible()
        expect(page.get_by_text("Open the page through that gateway.")).to_be_visible()
        keys.is_at(page.get_by_role("main"))
        keys.use("Language", "ArrowDown", backward=True)
        expect(page.get_by_role("main")).to_contain_text("您是谁？")
        keys.is_at(page.get_by_label("语言"))
        keys.press("ArrowUp")
        expect(title).to_be_visible()
        page.route("**/v1/memory/caller", lambda route: route.abort())
        page.reload()
        expect(page.get_by_role("alert")).to_be_visible()
        page.unroute("**/v1/memory/caller")
        keys.use("Try again", "Enter")
        expect(title).to_be_visible()
        keys.is_at(page.get_by_role("main"))


def test_a_token_that_is_refused_is_announced_and_asked_for_again(open_page: Opener) -> None:
    with by_keys(open_page(mode="jwt", expected=("401",))) as keys:
        token = keys.page.get_by_label("Access token")
        keys.is_at(token)
        assert not any("does not know who you are" in one for one in keys.said)
        keys.enter("nonsense", hears="The server does not know who you are", then_at=token)
