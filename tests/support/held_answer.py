"""An answer that is late: what the server has done, and the page does not know yet."""

from __future__ import annotations

import time

from pages import SECONDS_MAX
from playwright.sync_api import APIResponse, Page, Route

POLL_MS = 20


class HeldAnswer:
    """Of the first call by that method to an address that matches; the page gets it on `release`."""

    def __init__(self, page: Page, method: str, pattern: str) -> None:
        self._page = page
        self._method = method
        self._held: tuple[Route, APIResponse] | None = None
        page.route(pattern, self._hold)

    def _hold(self, route: Route) -> None:
        if route.request.method != self._method or self._held:
            route.fallback()
        else:
            self._held = route, route.fetch()

    def wait(self) -> None:
        """Until the server has answered."""
        until = time.monotonic() + SECONDS_MAX
        while not self._held:
            assert time.monotonic() < until, f"no {self._method} was answered"
            self._page.wait_for_timeout(POLL_MS)

    def release(self) -> None:
        assert self._held, "nothing is held"
        route, answer = self._held
        route.fulfill(response=answer)
