"""A web page makes its visitor's browser send chats: which of them have memory, in each mode of identity."""

from __future__ import annotations

import pytest

from extproc.identity import IdentityMode, IdentityRules, RefusalReason, RefusedIdentity, identify
from memory.model import Scope
from memory.model.web_pages import TrustedPages, origin_problem

RULES = IdentityRules(pages=TrustedPages(("https://app.example", "http://10.0.0.7:3000")))
FOREIGN = RefusedIdentity(RefusalReason.FOREIGN_PAGE)
ANN = ("x-authz-user-id", b"ann")
AMBIENT = pytest.mark.parametrize("mode", [IdentityMode.DEVELOPMENT, IdentityMode.HEADER])


def answered(mode: IdentityMode, host: bytes = b"127.0.0.1:8080", **headers: bytes) -> object:
    """Who this request is taken for. Names of headers with underscores; several values are joined by spaces."""
    sent = [(name.replace("_", "-"), value) for name, values in headers.items() for value in values.split(b" ")]
    return identify([(":authority", host), ANN, *sent], None, mode, rules=RULES)


@AMBIENT
@pytest.mark.parametrize(
    "origin",
    [
        *(b"https://evil.example", b"http://127.0.0.1.evil.example", b"http://localhost.evil.example:8080"),
        *(b"https://app.example.evil.example", b"file://", b"null", b""),
        b"http://10.0.0.7",  # without the port that is trusted
        b"http://app.example",  # without TLS
        b"http://localhost https://evil.example",  # two headers
        b"http://localhost,https://evil.example",
    ],
)
def test_a_chat_of_a_foreign_page_has_no_user(mode: IdentityMode, origin: bytes) -> None:
    assert answered(mode, origin=origin) == FOREIGN


@AMBIENT
@pytest.mark.parametrize(
    "origin",
    b"http://localhost:3000 http://127.0.0.9 https://[::1]:8443 https://APP.example http://10.0.0.7:3000".split(),
)
def test_pages_of_this_machine_and_trusted_ones_chat(mode: IdentityMode, origin: bytes) -> None:
    assert answered(mode, origin=origin, sec_fetch_site=b"cross-site") == Scope("ann")


@AMBIENT
@pytest.mark.parametrize("kind", [b"text/plain", b"TEXT/PLAIN;charset=UTF-8", b"multipart/form-data;boundary=x"])
def test_a_body_that_pages_send_without_asking_has_no_user(mode: IdentityMode, kind: bytes) -> None:
    assert answered(mode, content_type=kind) == FOREIGN
    assert answered(mode, content_type=b"application/json") == Scope("ann")


@AMBIENT
@pytest.mark.parametrize("site", [b"cross-site", b"same-site"])
def test_a_browser_that_names_no_origin_says_by_its_site_that_it_is_foreign(mode: IdentityMode, site: bytes) -> None:
    assert answered(mode, sec_fetch_site=site) == FOREIGN
    assert answered(mode, sec_fetch_site=b"same-origin") == Scope("ann")


@pytest.mark.parametrize("host", [b"evil.example:8080", b"127.0.0.1.evil.example", b"10.0.0.8:3000", b"[x"])
def test_a_page_that_points_its_own_name_at_this_machine_is_foreign(host: bytes) -> None:
    assert answered(IdentityMode.DEVELOPMENT, host) == FOREIGN
    assert answered(IdentityMode.DEVELOPMENT, host, origin=b"http://" + host, sec_fetch_site=b"same-origin") == FOREIGN


def test_a_trusted_page_may_call_us_by_its_own_name_on_our_port() -> None:
    assert answered(IdentityMode.DEVELOPMENT, b"App.example:8080", origin=b"https://app.example") == Scope("ann")


@pytest.mark.parametrize(
    ("origin", "site", "is_own"),
    [
        (b"https://chat.example:8443", b"same-origin", True),
        (b"http://chat.example:8443", b"", True),  # a browser that does not say how it sees it
        (b"http://chat.example:8443", b"cross-site", False),  # of another scheme
        (b"app://chat.example:8443", b"", False),
        (b"https://chat.example", b"", False),
        (b"https://other.example", b"same-origin", False),
    ],
)
def test_in_mode_header_own_pages_chat_until_origins_are_named(origin: bytes, site: bytes, *, is_own: bool) -> None:
    of_browser = [("sec-fetch-site", site)] if site else []
    sent = [(":authority", b"chat.example:8443"), ANN, ("origin", origin), *of_browser]
    assert identify(sent, None, IdentityMode.HEADER, rules=IdentityRules()) == (Scope("ann") if is_own else FOREIGN)
    assert identify(sent, None, IdentityMode.HEADER, rules=RULES) == FOREIGN
    assert identify(sent[:2], None, IdentityMode.HEADER, rules=RULES) == Scope("ann")


def test_the_name_in_an_origin_without_a_host_is_no_name_of_ours() -> None:
    rules = IdentityRules(pages=TrustedPages(("app://obsidian.example",)))
    rebound = [(":authority", b"obsidian.example:8080"), ANN, ("origin", b"http://obsidian.example:8080")]
    assert identify(rebound, None, IdentityMode.DEVELOPMENT, rules=rules) == FOREIGN
    plugin = [(":authority", b"127.0.0.1:8080"), ANN, ("origin", b"app://obsidian.example")]
    assert identify(plugin, None, IdentityMode.DEVELOPMENT, rules=rules) == Scope("ann")


def test_a_token_that_the_page_sends_is_proof_enough() -> None:
    token = ("x-memory-token-claims", b"eyJzdWIiOiJhbm4ifQ")  # {"sub":"ann"}
    headers = [(":authority", b"chat.example"), ("origin", b"https://evil.example"), token]
    assert identify(headers, None, IdentityMode.JWT, rules=RULES) == Scope("ann")


@pytest.mark.parametrize(
    "text",
    """https://app.example http://10.0.0.7:3000 http://[::1]:1 https://xn--bcher-kva.example https://a_b.example
    chrome-extension://abcdefghijklmnopabcdefghijklmnop moz-extension://0b6f0f8a-5d5b-4e5c-9d55-0f0c8b1f3a11
    tauri://localhost capacitor://localhost app://- http://localhost:8081 https://app.example:80""".split(),
)
def test_what_browsers_send_can_be_trusted(text: str) -> None:
    assert not origin_problem(text)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("null", "any page can send null"),
        ("*", "without wildcards"),
        ("https://*.example", "without wildcards"),
        ("https://a.example,https://b.example", "a text of its own"),
        ("https://bücher.example", "in ASCII"),
        ("https://App.example", "as https://app.example"),
        ("https://app.example:443", "https://app.example"),
        ("http://app.example:80", "http://app.example"),
        ("https://app.example:65536", "expected scheme"),
        ("http://127.1", "10.0.0.7"),
        ("http://0x7f.0.0.1", "as an address"),
        ("http://[::0001]:3000", "as ::1"),
        ("http://[fe80::1%eth0]", "as fe80::1"),
        ("file://", "no page"),
        ("file://localhost", "no page"),
        ("wss://app.example", "no page"),
        *(
            (text, "expected scheme")
            for text in ["", "app.example", "https://", "https://app.example/", "https://a@app.example", "https://a b"]
        ),
        *((f"https://app.example{end}", "expected scheme") for end in (":x", ":", ":080", "?q", "#f", "\n", "%20")),
    ],
)
def test_what_browsers_never_send_is_refused_with_what_to_write(text: str, advice: str) -> None:
    assert advice in origin_problem(text)
