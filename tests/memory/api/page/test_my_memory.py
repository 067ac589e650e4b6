"""*My memory* in a real browser, over a real library: one reader uses every action by keys alone.

After each action it is checked where the focus is, what is announced and what is stored.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from keyboard import Keys, by_keys
from page_world import QUESTION, PageWorld
from pages import Opener, card, details
from playwright.sync_api import expect

IS_WITHIN = "document.activeElement === document.body || Boolean(document.activeElement.closest('dialog'))"


@pytest.mark.slow("the only walk through this page in the first tier")
def test_every_action_can_be_used_by_keys_alone(open_page: Opener, user: str, world: PageWorld) -> None:
    world.say(user, f"{user}-t", QUESTION, "A good *green* tea, <b>of course</b>.", receipt_id=f"r-{user}-tea")
    world.say("stranger", f"{user}-s", QUESTION, "The stranger's answer", receipt_id=f"r-{user}-tea")
    with by_keys(open_page(user=user)) as keys:
        expect(keys.page.locator("#summary")).to_have_text("3 current memories · 1 replaced · 1 archived")
        expect(keys.page.get_by_role("article")).to_have_count(3)
        skip_to_the_content(keys)
        open_what_a_memory_came_from(keys)
        search(keys)
        export_all(keys, user)
        pause_and_resume(keys, world, user)
        correct(keys, world, user)
        forget(keys, world, user)
        choose_and_restore(keys, world, user)
        forget_all(keys, world, user)


def skip_to_the_content(keys: Keys) -> None:
    keys.press("Tab", then_at=keys.page.get_by_role("link", name="Skip to content"))
    keys.press("Enter", then_at=keys.page.get_by_role("main"))
    keys.press("Tab", then_at="Pause")


def open_what_a_memory_came_from(keys: Keys) -> None:
    """Its words, the answers that used it, and their receipts."""
    tea = card(keys.page, "Prefers green tea to coffee")
    opener = details(keys.page, "Prefers green tea to coffee")
    keys.use("Details", "Enter", then_at=opener)
    expect(opener).to_have_attribute("aria-expanded", "true")
    expect(tea).to_contain_text("I'd rather have green tea than coffee")
    expect(tea).to_contain_text("It was never corrected, and replaced nothing.")
    expect(tea).not_to_contain_text("2 + 2")
    keys.use("Show the answer", "Space", then_at="Hide the answer")
    answer = tea.locator(".answer")
    expect(answer.locator("blockquote")).to_have_text([QUESTION, "A good *green* tea, <b>of course</b>."])
    expect(answer.locator(".lines li")).to_have_text(["Prefers green tea to coffeefor this question"])
    expect(answer.locator("dl")).to_contain_text("12 ms")
    keys.press("Space", then_at="Show the answer")
    expect(answer).to_be_hidden()
    keys.use("Details", "Space", backward=True)
    expect(opener).to_have_attribute("aria-expanded", "false")
    keys.is_at(opener)


def search(keys: Keys) -> None:
    field = keys.page.get_by_label("Search my memories")
    keys.go("Search my memories", backward=True)
    keys.enter("which drink do I like?", hears="found.", then_at=field)
    expect(keys.page.get_by_role("heading", name="Best matches first")).to_be_visible()
    expect(keys.page.get_by_role("article").first).to_contain_text("green tea")
    keys.use("Clear", "Space", hears="3 memories shown.", then_at=field)


def export_all(keys: Keys, user: str) -> None:
    for key in ("Enter", "Space"):
        keys.go("Export", backward=True)
        with keys.page.expect_download() as waiting:
            keys.press(key)
        lines = Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()
        assert json.loads(lines[0])["user_id"] == user
        keys.hears("All memories were exported.")
        keys.is_at("Export")


def pause_and_resume(keys: Keys, world: PageWorld, user: str) -> None:
    opt_outs = world.parts.stores.opt_outs
    keys.use("Pause", "Space", hears="Memory is paused.", backward=True, then_at="Resume")
    expect(keys.page.get_by_text("Paused since")).to_be_visible()
    assert world.run(opt_outs.since(user)) is not None
    keys.press("Enter", hears="Memory is used again from the next chat on.", then_at="Pause")
    assert world.run(opt_outs.since(user)) is None


def correct(keys: Keys, world: PageWorld, user: str) -> None:
    """What it said before is listed with what learning replaced."""
    correct_it = card(keys.page, "Lives in Porto").get_by_role("button", name="Correct")
    text = keys.page.get_by_label("Corrected text")
    correct_it.focus()
    keys.press("Enter", then_at=text)
    keys.type(" and on the moon")
    keys.press("Escape", then_at=correct_it)
    assert "Lives in Porto" in world.contents(user)
    keys.press("Enter", then_at=text)
    keys.press("Control+A")
    keys.type("Lives in Lisbon")
    keys.use("Save", "Space", hears="The memory was corrected.", then_at=details(keys.page, "Lives in Lisbon"))
    assert "Lives in Lisbon" in world.contents(user)
    assert "Lives in Porto" not in world.contents(user)
    keys.press("Enter")
    past = card(keys.page, "Lives in Lisbon").locator(".lines li")
    expect(past.locator("span:first-child")).to_have_text(["Lives in Porto", "Lives in Braga"])
    expect(past.first).to_contain_text("Corrected by you")
    expect(past.last).to_contain_text("Replaced by what was said later")


def forget(keys: Keys, world: PageWorld, user: str) -> None:
    """Reading goes on at the next."""
    first, *left = keys.page.locator(".content").all_inner_texts()
    forget_it = card(keys.page, first).get_by_role("button", name="Forget")
    forget_it.focus()
    for opens, leaves in (("Enter", "Escape"), ("Space", "Enter")):
        keys.press(opens, then_at="Cancel")
        keys.press(leaves, then_at=forget_it)
    assert len(world.contents(user)) == 3
    keys.press("Enter", then_at="Cancel")
    keys.use("Forget it", "Enter", hears="The memory was forgotten.", then_at=details(keys.page, left[0]))
    expect(keys.page.locator(".content")).to_have_text(left)
    assert sorted(world.contents(user)) == sorted(left)


def choose_and_restore(keys: Keys, world: PageWorld, user: str) -> None:
    page, status = keys.page, keys.page.get_by_label("Show")
    keys.use("Show", "ArrowDown", hears="1 memory shown.", backward=True)
    expect(page.locator(".content")).to_have_text(["Lives in Braga"])
    page.get_by_label("Kind").select_option("Events")
    expect(page.get_by_text("No memory matches this choice.")).to_be_visible()
    page.get_by_label("Kind").select_option("Any")
    keys.hears("1 memory shown.")
    keys.press("ArrowDown", hears="1 memory shown.", then_at=status)
    keys.use("Restore", "Enter", hears="The memory is current again.")
    keys.is_at(details(page, "Was looking for a used bicycle"))
    expect(page.locator("#summary")).to_have_text("3 current memories · 1 replaced")
    assert "Was looking for a used bicycle" in world.contents(user)


def forget_all(keys: Keys, world: PageWorld, user: str) -> None:
    """Only once the word is typed."""
    word = keys.page.get_by_label("Type “forget” to confirm")
    keys.use("Forget all…", "Enter", backward=True, then_at=word)
    for key in ("Tab",) * 4 + ("Shift+Tab",) * 5:
        keys.press(key)
        assert keys.page.evaluate(IS_WITHIN), "the focus left the dialog"
    keys.press("Escape", then_at="Forget all…")
    assert len(world.contents(user)) == 3
    keys.press("Space", then_at=word)
    keys.enter("forget", hears="4 memories were forgotten.", then_at="Forget all…")
    assert world.contents(user) == []
    expect(keys.page.get_by_role("article")).to_have_count(0)
