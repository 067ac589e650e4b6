"""Shared projects on the page of memories: what a role may do there, and that the page offers nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from keyboard import by_keys
from page_world import PageWorld, fill
from pages import Opener, accessibility_faults
from playwright.sync_api import Page, expect
from project_members import let_in

from memory.model import Scope
from memory.model.memories import MemoryVisibility
from memory.model.projects import ProjectRole
from memory.service.requests import NewMemory

pytestmark = pytest.mark.full("one walk through each page is in the first tier")

SHARED = "We deploy on Fridays"
MEMBERS = {"editor": ProjectRole.EDITOR, "viewer": ProjectRole.VIEWER}


@pytest.fixture
def project(request: pytest.FixtureRequest, world: PageWorld) -> str:
    """A project of this test: its owner is `PROJECT-owner`, and `PROJECT-editor` has shared a memory in it."""
    name = re.sub(r"\W|_", "-", request.node.name[:40] + request.node.name[-5:])
    library = world.parts.library()
    membership = library.projects.membership
    world.run(membership.create(f"{name}-owner", name))
    for kind, role in MEMBERS.items():
        world.run(let_in(membership, f"{name}-owner", name, f"{name}-{kind}", role))
    said = NewMemory(SHARED, visibility=MemoryVisibility.MEMBERS)
    world.run(library.add(Scope(f"{name}-editor", name), [said]))
    return name


def choose(page: Page, project: str) -> None:
    page.get_by_label("Whose memories").select_option(project)
    expect(page.get_by_role("region", name="Members").get_by_role("listitem")).to_have_count(3)


def test_the_owner_may_forget_what_others_shared_also_on_a_telephone(open_page: Opener, project: str) -> None:
    size = {"width": 360, "height": 800}
    with open_page(user=f"{project}-owner", color_scheme="dark", viewport=size) as page:
        choose(page, project)
        card = page.get_by_role("article", name=SHARED)
        expect(card).to_contain_text(f"By {project}-editor")
        assert accessibility_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        page.get_by_role("button", name=f"Remove {project}-viewer").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert accessibility_faults(page) == []
        page.keyboard.press("Escape")
        card.get_by_role("button", name="Details").click()
        expect(card.get_by_text("Kind")).to_be_visible()
        expect(card).not_to_contain_text("The words it came from")
        card.get_by_role("button", name="Forget").click()
        page.get_by_role("dialog").get_by_role("button", name="Forget it").click()
        expect(page.get_by_text("Nothing is shared in this project yet.")).to_be_visible()


def test_a_viewer_reads_and_leaves_and_is_offered_no_more(open_page: Opener, world: PageWorld, project: str) -> None:
    fill(world, f"{project}-viewer")
    with open_page(user=f"{project}-viewer") as page:
        expect(page.get_by_role("article")).to_have_count(3)
        choose(page, project)
        expect(page.get_by_role("article")).to_have_count(1)
        card = page.get_by_role("article", name=SHARED)
        expect(card.get_by_role("button")).to_have_text(["Details"])
        members = page.get_by_role("region", name="Members")
        expect(members.get_by_role("button")).to_have_text(["Leave the project"])
        expect(page.get_by_role("button", name="Forget all…")).to_be_hidden()
        page.get_by_label("Whose memories").select_option("")
        expect(page.get_by_role("article")).to_have_count(3)
        expect(page.get_by_role("button", name="Forget all…")).to_be_visible()
        choose(page, project)
        members.get_by_role("button", name="Leave the project").click()
        page.get_by_role("dialog").get_by_role("button", name="Leave the project").click()
        expect(page.get_by_role("article")).to_have_count(3)
        expect(page.get_by_label("Whose memories")).to_be_hidden()


def test_members_whose_ids_end_alike_are_told_apart(open_page: Opener, world: PageWorld, project: str) -> None:
    admin = f"team/{project}-viewer"
    membership = world.parts.library().projects.membership
    world.run(let_in(membership, f"{project}-owner", project, admin, ProjectRole.ADMIN))
    with open_page(user=admin) as page:
        page.get_by_label("Whose memories").select_option(project)
        members = page.get_by_role("region", name="Members")
        expect(members.get_by_role("listitem")).to_have_count(4)
        expect(members.get_by_role("button", name="Leave the project")).to_have_count(1)
        expect(members.get_by_role("button", name=f"Remove {project}-viewer")).to_be_visible()
        own = members.get_by_role("listitem").filter(has_text=admin)
        expect(own.get_by_role("button")).to_have_text(["Leave the project"])


def test_what_the_api_refuses_is_told_where_it_was_asked(open_page: Opener, project: str) -> None:
    with open_page(user=f"{project}-owner", expected=("400",)) as page:
        choose(page, project)
        members = page.get_by_role("region", name="Members")
        members.get_by_label("User id").fill("x" * 300)
        members.get_by_role("button", name="Save").click()
        page.get_by_role("dialog").get_by_role("button", name="Invite").click()
        expect(members.get_by_role("alert")).to_contain_text("1-256 bytes")
        expect(members.get_by_role("listitem")).to_have_count(3)


def test_an_owner_adds_changes_and_removes_members_by_keys(open_page: Opener, world: PageWorld, project: str) -> None:
    with by_keys(open_page(user=f"{project}-owner")) as keys:
        page, members = keys.page, keys.page.get_by_role("region", name="Members")
        name, rows = members.get_by_label("User id"), members.get_by_role("listitem")
        place = page.get_by_label("Whose memories")
        expect(place).to_be_visible()
        keys.go("Whose memories")
        keys.press("ArrowDown")  # to the only project that there is
        keys.hears("1 memory shown.")
        keys.is_at(place)
        expect(rows).to_have_count(3)
        expect(page.locator("#summary")).to_have_text("A shared project. Your role: Owner.")
        members.get_by_label("Role").select_option("admin")
        keys.go("User id")
        keys.enter("new one/ü")
        expect(page.get_by_role("dialog")).to_contain_text("Invite new one/ü as Admin?")
        keys.is_at("Cancel")
        keys.press("Escape", then_at=name)
        expect(rows).to_have_count(3)
        keys.press("Enter", then_at="Cancel")
        keys.use("Invite", "Enter", hears="new one/ü is invited as Admin.", then_at=name)
        expect(rows).to_have_count(4)
        expect(rows.last).to_contain_text("invited")
        members.get_by_label("Role").select_option("editor")  # of somebody on the list: nothing to confirm
        keys.enter("new one/ü")
        expect(rows.last).to_contain_text("Editor · invited")
        keys.is_at(name)
        keys.use("Remove new one/ü", "Space", backward=True, then_at="Cancel")
        keys.press("Enter", then_at="Remove new one/ü")
        keys.press("Enter", then_at="Cancel")
        keys.use("Remove", "Enter", hears="new one/ü was removed.", then_at=name)
        expect(rows).to_have_count(3)
        kept = world.run(world.parts.library().projects.membership.members(f"{project}-owner", project))
        assert {one.user_id for one in kept} == {f"{project}-{kind}" for kind in ("owner", *MEMBERS)}


def test_who_is_invited_reads_who_asks_and_answers_by_keys(open_page: Opener, world: PageWorld, project: str) -> None:
    guest, membership = f"{project}-guest", world.parts.library().projects.membership

    def answer(word: str, heard: str) -> Iterator[Page]:
        world.run(membership.set_role(f"{project}-owner", project, guest, ProjectRole.EDITOR))
        with by_keys(open_page(user=guest)) as keys:
            asked = keys.page.get_by_role("region", name="Invitations").get_by_role("listitem")
            expect(asked).to_contain_text(f"{project}-owner invites you to the project “{project}” as Editor.")
            assert accessibility_faults(keys.page) == []
            keys.use(f"{word} the invitation of {project}-owner to {project}", "Enter", hears=heard)
            expect(asked).to_have_count(0)
            yield keys.page

    for page in answer("Decline", f"You declined the invitation to {project}."):
        expect(page.get_by_label("Whose memories")).to_be_hidden()
    for page in answer("Accept", f"You are a member of {project} now."):
        page.get_by_label("Whose memories").select_option(project)
        expect(page.get_by_role("article", name=SHARED)).to_be_visible()


def test_an_editor_changes_their_own(open_page: Opener, project: str) -> None:
    with open_page(user=f"{project}-editor", locale="zh-CN") as page:
        page.get_by_label("查看谁的记忆").select_option(project)
        card = page.get_by_role("article", name=SHARED)
        expect(card.get_by_role("button")).to_have_text(["详情", "更正", "忘记"])
        assert accessibility_faults(page) == []
