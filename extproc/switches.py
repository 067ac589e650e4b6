"""Whether a request's headers or its route switch memory off: recall and learning, for this request alone.

Both filters ask with the same headers, so that what is not recalled is not learnt either. A switch is no proof of
anything: it can only take memory away.
"""

from __future__ import annotations

from collections.abc import Sequence

from extproc.identity import Headers, first_header
from memory.settings.switches import OffRoute

MEMORY_HEADER = "x-memory"  # of a client, or of a proxy or filter ahead: "on" changes nothing, all else switches off
ON = frozenset({b"on", b""})


def switched_off(headers: Headers, routes: Sequence[OffRoute]) -> str:
    """Why memory is off for this request, as a metric label; "" if it is not."""
    if any(value.strip().lower() not in ON for name, value in headers if name == MEMORY_HEADER):
        return "header_off"
    authority, path = first_header(headers, ":authority"), first_header(headers, ":path").partition("?")[0]
    return "route_off" if any(route.matches(authority, path) for route in routes) else ""
