"""Somebody without a mouse, who hears what is announced: keys, the focus, and words of live regions.

And an answer that is late.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from pages import tab_to
from playwright.sync_api import APIResponse, Locator, Page, Route, expect

POLL_MS = 20
SECONDS_MAX = 60.0  # ends what hangs; no time is judged


class Keys:
    """Steps of a reader, in their order."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        self._heard = 0

    def go(self, name: str, *, backward: bool = False, limit: int = 60) -> None:
        """By Tab to the control of that name, the next one if there are several."""
        tab_to(self.page, name, key="Shift+Tab" if backward else "Tab", limit=limit)

    def press(self, *keys: str, hears: str = "", then_at: Locator | str = "") -> None:
        """`hears`: what is announced then. `then_at`: where the focus is in the end, as `is_at` takes it."""
        for key in keys:
            self.page.keyboard.press(key)
        if hears:
            self.hears(hears)
        if then_at:
            self.is_at(then_at)

    def use(
        self,
        name: str,
        *pressed: str,
        hears: str = "",
        then_at: Locator | str = "",
        backward: bool = False,
        limit: int = 60,
    ) -> None:
        """The control of that name."""
        self.go(name, backward=backward, limit=limit)
        self.press(*pressed, hears=hears, then_at=then_at)

    def confirm(
        self, name: str, answer: str, *, hears: str = "", then_at: Locator | str = "", backward: bool = False
    ) -> None:
        """Asks for what has to be confirmed: the question begins at *Cancel*."""
        self.use(name, "Enter", then_at="Cancel", backward=backward)
        self.use(answer, "Enter", hears=hears, then_at=then_at)

    def enter(self, text: str, *, hears: str = "", then_at: Locator | str = "") -> None:
        self.page.keyboard.type(text)
        self.press("Enter", hears=hears, then_at=then_at)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def hears(self, text: str) -> None:
        """It is announced, after what was heard last."""
        until = time.monotonic() + SECONDS_MAX
        while not (found := [place for place, one in enumerate(self.said) if text in one and place >= self._heard]):
            assert time.monotonic() < until, f"{text!r} is not announced, but {self.said[self._heard :]}"
            self.page.wait_for_timeout(POLL_MS)
        self._heard = found[0] + 1

    @property
    def said(self) -> list[str]:
        """Everything that was announced since the page was loaded."""
        said: list[str] = self.page.evaluate("said")
        return said

    def is_at(self, place: Locator | str) -> None:
        """A text is the name of a button."""
        found = self.page.get_by_role("button", name=place, exact=True) if isinstance(place, str) else place
        expect(found).to_be_focused()


@contextmanager
def by_keys(opening: AbstractContextManager[Page]) -> Iterator[Keys]:
    """A page that is used without a mouse."""
    with opening as page:
        yield Keys(page)
        assert page.evaluate("pointed") == 0, "a mouse was used"


class HeldAnswer:
    """What the server has done and the page does not know yet.

    Of the first call by that method to an address that matches; the page gets it on `release`.
    """

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
