"""A headless Chromium that is driven through a page, and what must never happen in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import axe_core_python
from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright

MY_PAGE, OPERATORS_PAGE = "/v1/memory/ui/", "/v1/memory/ui/operator.html"
CHROMIUM = shutil.which("chromium")
SECONDS_MAX = 60.0  # until something appears: only stops what never does
OF_VIOLATIONS = """
window.policyViolations = [];
addEventListener("securitypolicyviolation", (event) =>
  policyViolations.push(event.violatedDirective + " " + event.blockedURI));
"""
# What a screen reader would say of live regions and alerts, and whether anything but keys was used.
OF_WHAT_IS_SAID = """{
  const live = "[aria-live], [role=status], [role=alert]";
  window.said = [];
  window.pointed = 0;
  for (const kind of ["pointerdown", "mousedown", "touchstart"]) addEventListener(kind, () => (pointed += 1), true);
  const around = (node) => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement)?.closest(live);
  const within = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.querySelectorAll(live) : []);
  new MutationObserver((changes) => {
    const nodes = changes.flatMap((one) => [one.target, ...one.addedNodes]);
    const added = changes.flatMap((one) => [...one.addedNodes].flatMap((node) => [...within(node)]));
    const changed = new Set([...nodes.map(around), ...added]);
    for (const one of changed) if (one?.isConnected && one.textContent) said.push(one.textContent);
  }).observe(document, {subtree: true, childList: true, characterData: true});
}"""


class Opener(Protocol):
    """Opens a page of ours in a fresh browser context, as `watched` does."""

    def __call__(
        self, path: str = MY_PAGE, *, mode: str = "development", **options: Any
    ) -> AbstractContextManager[Page]: ...


@contextmanager
def chromium() -> Iterator[Browser]:
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*flags, "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@contextmanager
def watched(
    browser: Browser,
    url: str,
    *,
    user: str = "",
    has_clock: bool = False,
    expected: tuple[str, ...] = (),
    **options: Any,
) -> Iterator[Page]:
    """`user`: whom the page knows already; `has_clock`: its time can be moved on; `options`: of the context.

    At the end there was no error, no request to another origin, nothing against the policy. `expected`: parts of
    errors to ignore.
    """
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    context: BrowserContext = browser.new_context(**{"locale": "en-GB", "timezone_id": "UTC", **options})
    context.set_default_timeout(SECONDS_MAX * 1_000)
    context.add_init_script(OF_VIOLATIONS)
    context.add_init_script(OF_WHAT_IS_SAID)
    if user:
        context.add_init_script(f"sessionStorage['memory.caller'] ??= JSON.stringify({{user: {user!r}}})")
    if has_clock:
        context.clock.install()
    page = context.new_page()
    asked, errors = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.goto(url)
    yield page
    assert [one for one in errors if not any(part in one for part in expected)] == []
    assert {one for one in asked if not one.startswith((origin, f"blob:{origin}"))} == set()
    assert page.evaluate("policyViolations") == []
    context.close()


@cache
def axe_source() -> str:
    return (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def accessibility_faults(page: Page) -> list[str]:
    """What axe calls serious or critical on the page as it stands."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_source())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def card(page: Page, content: str) -> Locator:
    """Of the memory that says this."""
    return page.get_by_role("article", name=content)


def details(page: Page, content: str) -> Locator:
    return card(page, content).get_by_role("button", name="Details")


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  const name = at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent;
  return [name, style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth), at === document.body];
}"""


def tab_to(page: Page, name: str, *, key: str = "Tab", limit: int = 60) -> None:
    """Goes on by Tab until the control of that name has the focus, which must be seen at every step."""
    for _ in range(limit):
        page.keyboard.press(key)
        found, outline, is_outside = page.evaluate(FOCUSED)
        assert is_outside or outline >= 2, f"the focus on {found!r} cannot be seen"
        if found == name:
            return
    raise AssertionError(f"no way to {name!r} by keyboard")
