"""One browser, and one library that is served to it, for all tests of the page. Without Chromium they are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from milvus_lite_server import MilvusLiteServer
from page_world import PageWorld, fill, page_world
from pages import MY_PAGE, Opener, chromium, watched
from playwright.sync_api import Browser, Page, expect

MISSING = "NO CHROMIUM ON THE PATH: THE WEB PAGE IS NOT TESTED (on Debian: apt install chromium)"
expect.set_options(timeout=30_000)  # ends what hangs; no time is judged


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if shutil.which("chromium") is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, milvus_lite: MilvusLiteServer) -> Iterator[PageWorld]:
    with page_world(tmp_path_factory.mktemp("pages"), milvus_lite, "pages") as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one module: while Playwright runs, its loop counts as running, and other modules have asynchronous tests."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def open_page(browser: Browser, world: PageWorld) -> Opener:
    def opened(path: str = MY_PAGE, *, mode: str = "development", **options: Any) -> AbstractContextManager[Page]:
        return watched(browser, world.urls[mode] + path, **options)

    return opened


@pytest.fixture
def user(request: pytest.FixtureRequest, world: PageWorld) -> str:
    """Somebody whom no other test knows, with what `fill` gives."""
    name = f"{request.node.path.stem.removeprefix('test_')}-{request.node.name}"[:60].partition("[")[0]
    fill(world, name)
    return name


@pytest.fixture
def no_dead_letters_of_others(world: PageWorld) -> None:
    log = world.parts.state.turn_log
    letters = world.run(log.dead_letters(limit=100))
    world.run(log.drop([one.window_id for one in letters]))
