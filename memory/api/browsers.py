"""Blocks web pages from the API in development mode, since any page can make a browser send requests here.

In development nobody authenticates, so two headers that a page cannot forge are checked: `Host` (a page that points its
own name at this machine is visible there) and `Origin` (the page itself). Other programs send a loopback `Host` and no
`Origin`. In the other modes the edge's secret protects the API.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memory.api.identity import Forbidden
from memory.errors import BadInput

JSON = "application/json"

_LOOPBACK = r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?"
_HOST = re.compile(_LOOPBACK, re.IGNORECASE)
_ORIGIN = re.compile(rf"https?://{_LOOPBACK}", re.IGNORECASE)


class WrongType(BadInput):
    """The body is not declared as JSON: forms and "text/plain" are types that pages can send without permission."""

    def __init__(self, expected: str = JSON) -> None:
        super().__init__(f"send the body with the header content-type: {expected}", code="unsupported_media_type")


def refuse_pages(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise `Forbidden` unless `Host` is loopback, and `Origin`, if present, is loopback too.

    `headers` have lower-case names. Behind the proxy, `Host` is still what the client sent.
    """
    pairs = [(name, value.decode("latin-1")) for name, value in headers]
    hosts = [value for name, value in pairs if name == b"host"]
    if not hosts or not all(map(_HOST.fullmatch, hosts)):
        raise Forbidden("in identity mode development this API answers to localhost, 127.0.0.1 and [::1] only")
    if not all(_ORIGIN.fullmatch(value) for name, value in pairs if name == b"origin"):
        raise Forbidden("in identity mode development this API takes no calls from web pages of other hosts")


def refuse_other_types(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
    """Raise `WrongType` for a body that is not declared as JSON."""
    types = [value.decode("latin-1") for name, value in headers if name == b"content-type"]
    is_json = bool(types) and all(one.partition(";")[0].strip().lower() == JSON for one in types)
    if body and not is_json:
        raise WrongType
