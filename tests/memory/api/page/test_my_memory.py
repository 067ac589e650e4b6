"""The web page in a real browser, over a real library: every control does what it says, by mouse and by keyboard."""

from __future__ import annotations

from dataclasses import replace

from page_users import QUESTION, memory, receipt
from page_world import PageWorld
from pages import OPERATORS_PAGE, Opener, card, press
from playwright.sync_api import expect

from memory.model import Scope
from memory.service.requests import MemoryEdit


def test_a_memory_shows_its_words_its_uses_and_what_it_replaced(open_page: Opener, user: str) -> None:
    with open_page(user=user) as opened:
        page = opened.page
        expect(page.locator("#summary")).to_have_text("3 current memories · 1 replaced · 1 archived")
        expect(page.get_by_role("article")).to_have_count(3)
        tea = card(page, "Prefers green tea to coffee")
        tea.get_by_role("button", name="Details").click()
        expect(tea).to_contain_text("I'd rather have green tea than coffee")
        expect(tea).to_contain_text(QUESTION)
        expect(tea).to_contain_text(f"r-{user}-tea")
        expect(tea).to_contain_text("It was never corrected, and replaced nothing.")
        expect(tea).not_to_contain_text("2 + 2")
        city = card(page, "Lives in Porto")
        city.get_by_role("button", name="Details").click()
        expect(city).to_contain_text("Lives in Braga")
        expect(city).to_contain_text("Replaced by what was said later")
        expect(city).to_contain_text("No answer of the last days has used it.")
        city.get_by_role("button", name="Details").click()
        expect(city.get_by_text("Lives in Braga")).to_be_hidden()
        opened.assert_clean()


def test_search_finds_by_meaning_and_clear_leads_back(open_page: Opener, user: str) -> None:
    with open_page(user=user) as opened:
        page = opened.page
        expect(page.get_by_role("article")).to_have_count(3)
        page.get_by_label("Search my memories").fill("which drink do I like?")
        press(page, "Search")
        expect(page.get_by_role("heading", name="Best matches first")).to_be_visible()
        expect(page.get_by_role("article").first).to_contain_text("green tea")
        press(page, "Clear")
        expect(page.get_by_role("heading", name="Best matches first")).to_be_hidden()
        expect(page.get_by_role("article")).to_have_count(3)
        opened.assert_clean()


def test_the_choices_of_status_and_kind_are_applied(open_page: Opener, user: str) -> None:
    with open_page(user=user) as opened:
        page = opened.page
        page.get_by_label("Show").select_option("Replaced")
        expect(page.get_by_role("article")).to_have_count(1)
        expect(page.get_by_role("article")).to_contain_text("Lives in Braga")
        page.get_by_label("Kind").select_option("Events")
        expect(page.get_by_text("No memory matches this choice.")).to_be_visible()
        page.get_by_label("Kind").select_option("Any")
        page.get_by_label("Show").select_option("All")
        expect(page.get_by_role("article")).to_have_count(5)
        opened.assert_clean()


def test_a_corrected_memory_is_stored_and_a_cancelled_correction_is_not(
    open_page: Opener, user: str, world: PageWorld
) -> None:
    with open_page(user=user) as opened:
        page = opened.page
        city = card(page, "Lives in Porto")
        city.get_by_role("button", name="Correct").click()
        page.get_by_label("Corrected text").fill("Lives on the moon")
        press(page, "Cancel")
        expect(card(page, "Lives in Porto")).to_be_visible()
        city.get_by_role("button", name="Correct").click()
        page.get_by_label("Corrected text").fill("Lives in Lisbon")
        press(page, "Save")
        expect(page.get_by_text("The memory was corrected.")).to_be_visible()
        expect(card(page, "Lives in Lisbon")).to_be_visible()
        assert "Lives in Lisbon" in world.contents(user)
        assert "Lives in Porto" not in world.contents(user)
        card(page, "Lives in Lisbon").get_by_role("button", name="Details").click()
        past = card(page, "Lives in Lisbon").locator(".lines li").filter(has_text="Corrected by you")
        expect(past).to_contain_text("Lives in Porto")
        expect(past).to_contain_text(" to ")
        card(page, "Lives in Lisbon").get_by_role("button", name="Correct").click()
        page.get_by_label("Corrected text").fill("Lives in Faro")
        press(page, "Save")
        faro = card(page, "Lives in Faro").locator(".lines li")  # the newest first, and what learning replaced last
        expect(faro.locator("span:first-child")).to_have_text(["Lives in Lisbon", "Lives in Porto", "Lives in Braga"])
        opened.assert_clean()


def say_otherwise(world: PageWorld, user: str, content: str, to: str) -> None:
    """Somebody else's correction, or a chat that learnt better."""
    library = world.parts.library()
    (found,) = [one for one in world.run(library.page(Scope(user))).memories if one.content == content]
    world.run(library.patch(user, found.id, MemoryEdit(content=to)))


def test_a_memory_that_was_changed_since_it_was_loaded_is_shown_and_not_forgotten(
    open_page: Opener, user: str, world: PageWorld
) -> None:
    with open_page(user=user) as opened:
        page = opened.page
        expect(card(page, "Lives in Porto")).to_be_visible()
        say_otherwise(world, user, "Lives in Porto", "Lives in Faro")
        card(page, "Lives in Porto").get_by_role("button", name="Forget").click()
        expect(page.get_by_text("changed in the meantime")).to_be_visible()
        expect(card(page, "Lives in Faro").get_by_role("button", name="Details")).to_be_focused()
        expect(page.get_by_role("dialog")).to_have_count(0)
        opened.assert_clean()


def test_a_correction_begins_with_what_the_memory_says_now(open_page: Opener, user: str, world: PageWorld) -> None:
    with open_page(user=user) as opened:
        page = opened.page
        expect(card(page, "Lives in Porto")).to_be_visible()
        say_otherwise(world, user, "Lives in Porto", "Lives in Faro")
        card(page, "Lives in Porto").get_by_role("button", name="Correct").click()
        expect(page.get_by_role("alert")).to_contain_text("is now: “Lives in Faro”")
        press(page, "Cancel")
        expect(card(page, "Lives in Faro")).to_be_visible()
        opened.assert_clean()


def test_a_correction_never_overwrites_a_change_that_the_user_has_not_seen(
    open_page: Opener, user: str, world: PageWorld
) -> None:
    with open_page(user=user) as opened:
        page = opened.page
        card(page, "Lives in Porto").get_by_role("button", name="Correct").click()
        page.get_by_label("Corrected text").fill("Lives in Lisbon")
        say_otherwise(world, user, "Lives in Porto", "Lives in Faro")
        press(page, "Save")
        expect(page.get_by_role("alert")).to_contain_text("is now: “Lives in Faro”")
        assert "Lives in Faro" in world.contents(user)
        expect(page.get_by_label("Corrected text")).to_have_value("Lives in Lisbon")
        press(page, "Save")
        expect(card(page, "Lives in Lisbon")).to_be_visible()
        assert "Lives in Faro" not in world.contents(user)
        opened.assert_clean(expected=("412",))


def test_a_memory_that_changes_behind_the_question_is_not_forgotten(
    open_page: Opener, user: str, world: PageWorld
) -> None:
    with open_page(user=user) as opened:
        page = opened.page
        card(page, "Lives in Porto").get_by_role("button", name="Forget").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        say_otherwise(world, user, "Lives in Porto", "Lives in Faro")
        press(page, "Forget it")
        expect(page.get_by_text("changed in the meantime")).to_be_visible()
        expect(card(page, "Lives in Faro")).to_be_visible()
        assert "Lives in Faro" in world.contents(user)
        opened.assert_clean(expected=("412",))


def test_a_use_in_a_chat_does_not_stand_in_the_way_of_a_correction(
    open_page: Opener, user: str, world: PageWorld
) -> None:
    with open_page(user=user) as opened:
        page = opened.page
        card(page, "Lives in Porto").get_by_role("button", name="Correct").click()
        page.get_by_label("Corrected text").fill("Lives in Lisbon")
        library = world.parts.library()
        (found,) = [one for one in world.run(library.page(Scope(user))).memories if one.content == "Lives in Porto"]
        world.put(replace(found, access_count=found.access_count + 1))
        press(page, "Save")
        expect(card(page, "Lives in Lisbon")).to_be_visible()
        opened.assert_clean(expected=("412",))


def test_another_user_s_memories_never_appear(open_page: Opener, user: str, world: PageWorld) -> None:
    world.put(memory("stranger", "s1", "The stranger's secret is beetroot"))
    with open_page(user=user) as opened:
        page = opened.page
        page.get_by_label("Show").select_option("All")
        expect(page.get_by_role("article")).to_have_count(5)
        page.get_by_label("Search my memories").fill("the stranger's secret beetroot")
        press(page, "Search")
        expect(page.get_by_text("No memory matches these words.")).to_be_visible()
        assert "beetroot" not in page.inner_text("main")
        asked = (
            "(id) => fetch(`/v1/memory/${id}`, {headers: {'x-authz-user-id': '%s'}}).then((answer) => answer.status)"
        )
        assert page.evaluate(asked % user, "stranger-s1") == page.evaluate(asked % user, "never-was") == 404
        opened.assert_clean(expected=("404",))


def test_what_looks_like_html_is_shown_as_text_everywhere(open_page: Opener, world: PageWorld) -> None:
    attack = '<img src=x onerror="window.harm = 1"><script>window.harm = 1</script>'
    name = "<b onclick=window.harm=1>xss</b>"
    world.put(memory("xss", "m", attack, project_id=name), memory("xss", "old", attack, days=9))
    world.keep(receipt("xss", "r", "xss-m", query=attack))
    world.bury("xss", "xss-turn", reason=attack)
    with open_page(user="xss") as opened:
        tags = card(opened.page, attack).first
        expect(tags).to_contain_text(f"Project {name}")
        tags.get_by_role("button", name="Details").click()
        expect(tags).to_contain_text("When it was used")
        tags.get_by_role("button", name="Forget").click()
        expect(opened.page.get_by_role("dialog")).to_contain_text(attack)
        assert opened.page.evaluate(
            "[window.harm, document.querySelectorAll('main img, main b, main script').length]"
        ) == [None, 0]
        opened.assert_clean()
    with open_page(OPERATORS_PAGE) as opened:
        expect(opened.page.get_by_role("region", name="Dead letters")).to_contain_text(attack)
        assert opened.page.evaluate(
            "[window.harm, document.querySelectorAll('main img, main b, main script').length]"
        ) == [None, 0]
        opened.assert_clean()
