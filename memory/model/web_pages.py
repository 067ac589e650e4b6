"""Which web pages may speak for the user of a browser, where the user is not proven by something that a page must hold.

Any page can make a browser send requests to an address that it reaches; the browser, or the network, then says who
the user is. What a page cannot forge is checked: `Host` shows the name under which it reached us, also if it points its
own name at this machine; `Origin` and `Sec-Fetch-Site` show the page; and without asking first it can only send bodies
of three types. Programs send a plain `Host`, and none of the other headers.

An origin in the settings has to equal what browsers send in `Origin`, in one way (URL and HTML standards): scheme, host
and port in lower-case ASCII, addresses in their shortest form, no port that the scheme implies. Any other text would
never equal what comes, and trust nobody.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase, digits
from urllib.parse import urlsplit

_LOOPBACK = r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?"
_HOST = re.compile(_LOOPBACK, re.IGNORECASE)
LOOPBACK_ORIGIN = rf"https?://{_LOOPBACK}"
_ORIGIN = re.compile(LOOPBACK_ORIGIN, re.IGNORECASE)
_OF_FORMS = frozenset(("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"))
_OF_OURS = frozenset(("same-origin", "none"))  # values of Sec-Fetch-Site
_EXPECTED = "expected scheme, host and perhaps a port, without path, user or spaces, such as https://app.example"
_OF_NAMES = frozenset(ascii_lowercase + digits + "._-")
_OF_NO_PAGE = frozenset("about blob data file ftp javascript ws wss".split())  # their pages send `null`, or none exist
_IMPLIED_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class PageHeaders:
    """Each value of the headers that a browser adds, and of the content type; as sent, none for an absent one."""

    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()
    fetch_sites: Sequence[str] = ()
    content_types: Sequence[str] = ()

    @classmethod
    def of(cls, headers: Sequence[tuple[str, bytes]], *, host: str) -> PageHeaders:
        """Those of a request with these headers, whose names are in lower case; `host`: that of the first."""

        def values(name: str) -> list[str]:
            return [value.decode("latin-1") for key, value in headers if key == name]

        return cls(values(host), values("origin"), values("sec-fetch-site"), values("content-type"))


@dataclass(frozen=True, slots=True)
class TrustedPages:
    """`origins`: as browsers send them (`origin_problem`); their pages are trusted next to those of loopback."""

    origins: tuple[str, ...] = ()

    def is_known_host(self, sent: PageHeaders) -> bool:
        """Whether we were called by a name of this machine, or of a trusted page that has a host."""
        named = {urlsplit(origin).hostname for origin in self.origins if origin.startswith(("http://", "https://"))}
        return bool(sent.hosts) and all(_HOST.fullmatch(one) or _name_of(one) in named for one in sent.hosts)

    def is_trusted_origin(self, sent: PageHeaders, *, may_be_host: bool = False) -> bool:
        """Whether no page sent this, or a trusted one.

        `may_be_host`: without configured origins, also a page of the host that was called: a page that points its own
        name at us is one as well, so whoever names origins names them all.
        """
        own = _origins_of_the_host(sent) if may_be_host and not self.origins else frozenset()
        return all(_ORIGIN.fullmatch(one) or one.lower() in self.origins or one.lower() in own for one in sent.origins)

    def is_foreign_chat(self, sent: PageHeaders, *, is_host_checked: bool) -> bool:
        """Whether a foreign page may have made a browser send this chat.

        `is_host_checked`: nobody in front of us authenticates, so the name by which we were called has to be known.
        """
        if is_host_checked and sent.hosts and not self.is_known_host(sent):
            return True
        if not self.is_trusted_origin(sent, may_be_host=not is_host_checked):
            return True
        if not sent.origins and not _is_ours(sent):
            return True
        return any(one.partition(";")[0].strip().lower() in _OF_FORMS for one in sent.content_types)


def _origins_of_the_host(sent: PageHeaders) -> frozenset[str]:
    """Those whose pages a browser may call of the same origin: which scheme we were called by, it alone knows."""
    hosts = sent.hosts if _is_ours(sent) else ()
    return frozenset(f"{scheme}://{host.lower()}" for scheme in ("http", "https") for host in hosts)


def _is_ours(sent: PageHeaders) -> bool:
    """Whether the browser, if it says so, sees no border between the page and the host that was called."""
    return _OF_OURS.issuperset(one.lower() for one in sent.fetch_sites)


def _name_of(host: str) -> str:
    """Without its port, in lower case; "" for what is no host."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


LOOPBACK_PAGES = TrustedPages()


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
