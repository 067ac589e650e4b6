"""The operator's page of a running product: a part that dies is shown as not running, until it is back."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pages import OPERATORS_PAGE, accessibility_faults, chromium, watched
from playwright.sync_api import Browser, Page, expect
from product import Product, running_product, with_pid
from upstream import running_upstream

MISSING = "NO CHROMIUM ON THE PATH: THE WEB PAGE IS NOT TESTED (on Debian: apt install chromium)"
SEEN_MS_MAX = 60_000  # the page looks every five seconds, and a busy machine may stand still for some
LOOKS_MAX = 300

pytestmark = [pytest.mark.slow("a product of its own, of which parts are killed")]


@pytest.fixture(scope="module")
def upstream() -> Iterator[ExitStack]:
    """Closed by whoever takes the upstream away."""
    with ExitStack() as found:
        yield found


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, upstream: ExitStack) -> Iterator[Product]:
    if shutil.which("chromium") is None:
        pytest.skip(MISSING)
    url = upstream.enter_context(running_upstream()).url
    with running_product(Path(tmp_path_factory.mktemp("watched")) / "data", upstream=url) as found:
        yield found


@pytest.fixture(scope="module")
def browser(product: Product) -> Iterator[Browser]:
    with chromium() as found:
        yield found


def state_of(page: Page, part: str) -> str:
    line = page.get_by_role("region", name="Health").get_by_role("listitem").filter(has_text=part)
    return line.locator("strong").inner_text()


def keep_dead_until_shown(page: Page, product: Product, command: str, part: str) -> None:
    """Kills it again as often as it is started again, until the page says that it does not run."""
    for _ in range(LOOKS_MAX):
        for pid in product.children(command):
            with_pid(pid, signal.SIGKILL)
        if state_of(page, part) == "Not running":
            return
        page.wait_for_timeout(200)
    raise AssertionError(f"the page says of {part}: {state_of(page, part)}")


@pytest.mark.parametrize(
    ("command", "part"), [("memproxy worker", "Workers"), ("memproxy filter", "Filters"), ("envoy -c", "Envoy")]
)
def test_a_part_that_dies_is_shown_as_such_until_it_is_back(
    product: Product, browser: Browser, command: str, part: str
) -> None:
    with watched(browser, product.api + OPERATORS_PAGE) as opened:
        page = opened.page
        line = page.get_by_role("region", name="Health").get_by_role("listitem").filter(has_text=part)
        expect(line.locator("strong")).to_have_text("Works", timeout=SEEN_MS_MAX)
        assert product.children(command), f"no process is called {command}"
        keep_dead_until_shown(page, product, command, part)
        assert line.get_attribute("class") == "bad"
        assert accessibility_faults(page) == []
        expect(line.locator("strong")).to_have_text("Works", timeout=SEEN_MS_MAX)
        opened.assert_clean()


def test_an_upstream_that_is_down_is_shown_as_such(product: Product, browser: Browser, upstream: ExitStack) -> None:
    with watched(browser, product.api + OPERATORS_PAGE) as opened:
        line = opened.page.get_by_role("region", name="Health").get_by_role("listitem").filter(has_text="Model server")
        expect(line.locator("strong")).to_have_text("Works", timeout=SEEN_MS_MAX)
        upstream.close()
        expect(line.locator("strong")).to_have_text("Not available", timeout=SEEN_MS_MAX)
        opened.assert_clean()
