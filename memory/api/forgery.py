"""Refuses changes that a page of another origin makes a browser send, in every identity mode (CSRF).

A browser adds `Origin` to every request that may change something, and `Sec-Fetch-Site` to all; programs send neither.
From a browser a change therefore needs a header of its own, which a page of another origin can only send after a
preflight, and this API approves none. That holds whatever proxies do with `Host`.
"""

from __future__ import annotations

from collections.abc import Iterable

from memory.api.identity import Forbidden

PAGE_HEADER = b"x-memory-page"  # any value
OF_BROWSERS = frozenset((b"origin", b"sec-fetch-site"))
WITHOUT_EFFECT = frozenset(("GET", "HEAD", "OPTIONS"))


def refuse_forged(method: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises `Forbidden` for a change that a browser sends without our header. `headers` have lower-case names."""
    names = {name for name, _ in headers}
    if method not in WITHOUT_EFFECT and names & OF_BROWSERS and PAGE_HEADER not in names:
        raise Forbidden("a web page that changes memories must send the header x-memory-page")
