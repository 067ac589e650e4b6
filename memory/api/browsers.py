"""Blocks web pages from the API in development mode, since any page can make a browser send requests here.

In development nobody authenticates, so what a page cannot forge is checked (memory/model/web_pages.py). In the other
modes the edge's secret protects the API, and MCP takes no calls of foreign pages.

Changes that a page of another origin makes a browser send are refused in every mode (CSRF). A browser adds `Origin` to
every request that may change something, and `Sec-Fetch-Site` to all; programs send neither. From a browser a change
therefore needs a header of its own, which a page of another origin can only send after a preflight, and this API
approves none. That holds whatever proxies do with `Host`.
"""

from __future__ import annotations

from collections.abc import Iterable

from memory.api.identity import Forbidden
from memory.errors import BadInput
from memory.model.web_pages import PageHeaders, TrustedPages

JSON = "application/json"
PAGE_HEADER = b"x-memory-page"  # any value
OF_BROWSERS = frozenset((b"origin", b"sec-fetch-site"))
WITHOUT_EFFECT = frozenset(("GET", "HEAD", "OPTIONS"))


class WrongType(BadInput):
    """The body is not declared as JSON: forms and "text/plain" are types that pages can send without permission."""

    def __init__(self, expected: str = JSON) -> None:
        super().__init__(f"send the body with the header content-type: {expected}", code="unsupported_media_type")


def refuse_pages(headers: Iterable[tuple[bytes, bytes]], pages: TrustedPages) -> None:
    """Raise `Forbidden` unless `Host` is loopback or of a trusted page, and so is `Origin`, if present.

    Behind the proxy, `Host` is still what the client sent.
    """
    sent = _sent(headers)
    if not pages.is_known_host(sent):
        raise Forbidden("in identity mode development this API answers to localhost, 127.0.0.1 and [::1] only")
    if not pages.is_trusted_origin(sent):
        raise Forbidden("in identity mode development this API takes no calls from web pages of other hosts")


def refuse_foreign_origin(headers: Iterable[tuple[bytes, bytes]], pages: TrustedPages) -> None:
    """Raise `Forbidden` for a page of another host than the one that was called, in every mode."""
    if not pages.is_trusted_origin(_sent(headers), may_be_host=True):
        raise Forbidden("web pages of other hosts must be named in memory.identity.trusted_origins")


def refuse_forged(method: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises `Forbidden` for a change that a browser sends without our header. `headers` have lower-case names."""
    names = {name for name, _ in headers}
    if method not in WITHOUT_EFFECT and names & OF_BROWSERS and PAGE_HEADER not in names:
        raise Forbidden("a web page that changes memories must send the header x-memory-page")


def _sent(headers: Iterable[tuple[bytes, bytes]]) -> PageHeaders:
    """`headers` have lower-case names."""
    return PageHeaders.of([(name.decode("latin-1"), value) for name, value in headers], host="host")


def refuse_other_types(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
    """Raise `WrongType` for a body that is not declared as JSON."""
    types = [value.decode("latin-1") for name, value in headers if name == b"content-type"]
    is_json = bool(types) and all(one.partition(";")[0].strip().lower() == JSON for one in types)
    if body and not is_json:
        raise WrongType
