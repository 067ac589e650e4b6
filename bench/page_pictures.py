"""Makes the pictures of the web page in docs/images, from a real page over a real library.

`python bench/page_pictures.py [FOLDER]`. Needs Chromium.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import rig  # noqa: F401  # makes tests/support importable
from milvus_lite_server import MilvusLiteServer
from page_world import PageWorld, memory, page_world, receipt
from pages import MY_PAGE, OPERATORS_PAGE, chromium, watched
from playwright.sync_api import Browser, Page, expect
from project_members import let_in

from memory.adapters.evaluation_reports import FolderOfReports
from memory.model import Evidence, MemoryStatus, Scope
from memory.model.evaluation_reports import EvaluationReport, ReportHead, ReportTable
from memory.model.memories import MemoryVisibility
from memory.model.projects import ProjectRole
from memory.service.requests import NewMemory

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDE, NARROW = {"width": 1100, "height": 860}, {"width": 390, "height": 800}
TRIP = "Maria and I fly to Lisbon in March, and I'm allergic to hazelnuts"
LINS_TRIP = "我三月要和姐姐一起去里斯本，另外我对榛子过敏"
ADA = (  # name, content, category, days ago, what was said, and the part of it that says this
    ("tea", "Prefers green tea to coffee", "preference", 0.2, "I'd rather have green tea than coffee, thanks", ""),
    ("trip", "Travels to Lisbon in March with her sister Maria", "event", 0.3, TRIP, TRIP.partition(", and")[0]),
    ("nuts", "Is allergic to hazelnuts", "constraint", 0.3, TRIP, TRIP.rpartition("and ")[2]),
    ("city", "Lives in Porto", "fact", 2.0, "we moved to Porto last week", ""),
    ("style", "Wants short answers without bullet points", "preference", 6.0, "keep it short, and no bullets", ""),
    ("goal", "Trains for a half marathon in May", "goal", 9.0, "I signed up for the half marathon in May", ""),
)
LIN = (
    ("tea", "比起咖啡更喜欢喝绿茶", "preference", 0.2, "我还是更喜欢喝绿茶，不太喝咖啡", ""),
    ("trip", "三月和姐姐一起去里斯本旅行", "event", 0.3, LINS_TRIP, LINS_TRIP.partition("，")[0]),
    ("nuts", "对榛子过敏", "constraint", 0.3, LINS_TRIP, LINS_TRIP.partition("另外")[2]),
    ("city", "住在杭州", "fact", 2.0, "我们上周搬到杭州了", ""),
    ("style", "希望回答简短，不要列表", "preference", 6.0, "请简短一点，不要用列表", ""),
    ("goal", "正在为五月的半程马拉松训练", "goal", 9.0, "我报名了五月的半程马拉松", ""),
)
TEAM = {  # the project of each, who shares what in it
    "ada": (
        "porto-office",
        ("ben", "The office closes at eight on Fridays"),
        ("ada", "Deployments happen on Tuesdays"),
    ),
    "lin": ("杭州团队", ("陈明", "周五办公室八点关门"), ("lin", "每周二发布新版本")),
}
QUESTIONS = {
    "ada": ("What can I drink in the afternoon?", "Suggest a present for a friend like me", "I lived in Braga"),
    "lin": ("下午喝点什么好？", "推荐一份适合我的礼物", "以前住在上海"),
}


def fill(world: PageWorld, user: str, said: tuple[Any, ...]) -> None:
    first, second, before = QUESTIONS[user]
    old = memory(user, "old", before, days=200, status=MemoryStatus.SUPERSEDED, superseded_by=f"{user}-city")
    world.put(
        *(
            memory(
                user,
                name,
                content,
                days=days,
                category=category,
                evidence=(Evidence(quote, f"{user}-{days}", clause=clause),),
                access_count=2 if name == "tea" else 0,
            )
            for name, content, category, days, quote, clause in said
        ),
        old,
    )
    tea, nuts = f"{user}-tea", f"{user}-nuts"
    world.keep(
        receipt(user, "4f1c", tea, query=first, hours=1.2),
        receipt(user, "90ab", nuts, tea, query=second, hours=0.6),
        receipt(user, "17d2", query="2 + 2?", hours=0.1),
    )


def share(world: PageWorld, user: str) -> None:
    """A project of the user's with an editor and a viewer."""
    library, (project, *shared) = world.parts.library(), TEAM[user]
    (colleague, _), _ = shared
    world.run(library.projects.membership.create(user, project))
    for member, role in ((colleague, ProjectRole.EDITOR), (f"{user}.guest", ProjectRole.VIEWER)):
        world.run(let_in(library.projects.membership, user, project, member, role))
    for author, content in shared:
        said = NewMemory(content, project_id=project, visibility=MemoryVisibility.MEMBERS)
        world.run(library.add(Scope(author), [said]))


def keep_reports(world: PageWorld) -> None:
    """With figures of nothing: the picture shows a place, not what memory does."""
    reports = FolderOfReports(world.parts.settings.reports_path)
    for name, evaluation, hour in (("recall-20260301-080000", "recall", 8), ("signals-20260301-070000", "signals", 7)):
        at = datetime(2026, 3, 1, hour, tzinfo=UTC).timestamp()
        rows = (("all", "0.00", "0.00"), ("one place", "0.00", "0.00"))
        tables = (ReportTable(("group", "found", "of these needed"), rows),)
        head = ReportHead(name, evaluation, "records.jsonl", "0.1.0", at)
        world.run(reports.keep(EvaluationReport(head, tables)))


def show_memories(page: Page, details: str) -> None:
    expect(page.get_by_role("article")).to_have_count(6)
    page.get_by_role("button", name=details).first.click()
    expect(page.locator(".details dl").first).to_be_visible()
    page.evaluate("document.activeElement.blur()")


def show_project(page: Page, _: str) -> None:
    page.locator(".tools select").first.select_option(index=1)
    expect(page.get_by_role("article")).to_have_count(2)
    expect(page.locator(".members li")).to_have_count(3)
    page.evaluate("document.activeElement.blur()")


def show_operator(page: Page, _: str) -> None:
    expect(page.locator(".letters tbody tr").first).to_be_visible()
    page.locator("summary").nth(1).click()
    page.locator("section:has(#part-reports) summary").first.click()
    expect(page.get_by_text("recall-20260301-080000")).to_be_visible()
    page.evaluate("document.activeElement.blur()")


def take(browser: Browser, world: PageWorld, folder: Path) -> None:
    english, chinese = ("en-GB", "Details", "ada"), ("zh-CN", "详情", "lin")
    for name, path, show, (locale, details, user), theme, size in (
        ("memory-en-light", MY_PAGE, show_memories, english, "light", WIDE),
        ("memory-en-dark", MY_PAGE, show_memories, english, "dark", WIDE),
        ("memory-zh-light", MY_PAGE, show_memories, chinese, "light", WIDE),
        ("memory-zh-dark", MY_PAGE, show_memories, chinese, "dark", WIDE),
        ("memory-narrow", MY_PAGE, show_memories, english, "light", NARROW),
        ("project-en-light", MY_PAGE, show_project, english, "light", WIDE),
        ("project-zh-dark", MY_PAGE, show_project, chinese, "dark", WIDE),
        ("operator-en-light", OPERATORS_PAGE, show_operator, english, "light", WIDE),
        ("operator-zh-dark", OPERATORS_PAGE, show_operator, chinese, "dark", WIDE),
    ):
        with watched(browser, world.url + path, user=user, locale=locale, color_scheme=theme, viewport=size) as opened:
            show(opened.page, details)
            opened.page.screenshot(path=folder / f"page-{name}.png", full_page=path == OPERATORS_PAGE)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        milvus, place = MilvusLiteServer(Path(made) / "milvus"), Path(made) / "world"
        place.mkdir()
        milvus.start()
        try:
            with page_world(place, milvus, "pictures") as world, chromium() as browser:
                fill(world, "ada", ADA)
                fill(world, "lin", LIN)
                share(world, "ada")
                share(world, "lin")
                world.bury("ada", "t1", reason="model is unavailable: no answer within 60 s")
                world.bury("lin", "t2", reason="the plan could not be read")
                keep_reports(world)
                take(browser, world, folder)
        finally:
            milvus.kill()


if __name__ == "__main__":
    main()
