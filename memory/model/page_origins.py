"""What is wrong with a text that should be the origin of a page: it has to equal what browsers send in `Origin`.

They write it in one way (URL and HTML standards): scheme, host and port in lower-case ASCII, addresses in their
shortest form, no port that the scheme implies. Any other text would never equal what comes, and trust nobody.
"""

from __future__ import annotations

import ipaddress
from string import ascii_lowercase, digits
from urllib.parse import urlsplit

_EXPECTED = "expected scheme, host and perhaps a port, without path, user or spaces, such as https://app.example"
_OF_NAMES = frozenset(ascii_lowercase + digits + "._-")
_OF_NO_PAGE = frozenset("about blob data file ftp javascript ws wss".split())  # their pages send `null`, or none exist
_IMPLIED_PORTS = {"http": 80, "https": 443}


def origin_problem(text: str) -> str:
    """In words, with what to write instead where that is certain; "" for an origin as browsers send it."""
    if text == "null":
        return "any page can send null, from a frame without an origin; it cannot be trusted"
    if "*" in text or "," in text:
        return "each origin is a text of its own, without wildcards"
    if not text.isascii():
        return "browsers send names in ASCII, such as https://xn--bcher-kva.example"
    if text != text.lower():
        return f"browsers send it in lower case, as {text.lower()}"
    try:
        parts = urlsplit(text)
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return _EXPECTED
    if parts.scheme in _OF_NO_PAGE:
        return f"no page has an origin of scheme {parts.scheme}"
    host = f"[{name}]" if ":" in name else name
    if f"{parts.scheme}://{host}" + ("" if port is None else f":{port}") != text:
        return _EXPECTED
    if port is not None and port == _IMPLIED_PORTS.get(parts.scheme):
        return f"browsers leave out the port that {parts.scheme} implies: {parts.scheme}://{host}"
    return _host_problem(name)


def _host_problem(name: str) -> str:
    """Of a name, or of an address without its brackets."""
    if ":" not in name and not _is_read_as_address(name):
        return "" if name and _OF_NAMES.issuperset(name) else _EXPECTED
    try:
        shown = ipaddress.ip_address(name).compressed
    except ValueError:
        return "its host is read as an address, and is none in the form of 10.0.0.7 or [2001:db8::1]"
    return "" if shown == name and "%" not in name else f"browsers send the address as {shown.partition('%')[0]}"


def _is_read_as_address(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last.isdigit() or (last.startswith("0x") and set(last[2:]) <= set("0123456789abcdef"))
