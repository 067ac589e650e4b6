"""A web page makes its visitor's browser send chats: which of them have memory, in each mode of identity."""

from __future__ import annotations

import pytest

from extproc.identity import IdentityMode, IdentityRules, RefusalReason, RefusedIdentity, identify
from memory.model import Scope
from memory.model.web_pages import TrustedPages, is_origin

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
        b"https://evil.example",
        b"http://127.0.0.1.evil.example",
        b"http://localhost.evil.example:8080",
        b"http://10.0.0.7",  # without the port that is trusted
        b"http://app.example",  # without TLS
        b"https://app.example.evil.example",
        b"file://",
        b"null",
        b"",
        b"http://localhost https://evil.example",  # two headers
        b"http://localhost,https://evil.example",
    ],
)
def test_a_chat_of_a_foreign_page_has_no_user(mode: IdentityMode, origin: bytes) -> None:
    assert answered(mode, origin=origin) == FOREIGN


@AMBIENT
@pytest.mark.parametrize(
    "origin",
    [
        b"http://localhost:3000",
        b"http://127.0.0.9",
        b"https://[::1]:8443",
        b"https://APP.example",
        b"http://10.0.0.7:3000",
    ],
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


def test_in_mode_header_the_gateway_knows_its_names_and_pages_of_the_host_itself_chat() -> None:
    mode, host = IdentityMode.HEADER, b"chat.example:8443"
    assert answered(mode, host) == Scope("ann")
    assert answered(mode, host, origin=b"https://chat.example:8443") == Scope("ann")
    assert answered(mode, host, origin=b"https://other.example") == FOREIGN


def test_a_token_that_the_page_sends_is_proof_enough() -> None:
    token = ("x-memory-token-claims", b"eyJzdWIiOiJhbm4ifQ")  # {"sub":"ann"}
    headers = [(":authority", b"chat.example"), ("origin", b"https://evil.example"), token]
    assert identify(headers, None, IdentityMode.JWT, rules=RULES) == Scope("ann")


@pytest.mark.parametrize("text", ["https://app.example", "http://10.0.0.7:3000", "http://[::1]:1"])
def test_an_origin_can_be_trusted(text: str) -> None:
    assert is_origin(text)


@pytest.mark.parametrize(
    "text",
    """null * app.example https:// https://app.example/ https://App.example ftp://app.example https://a@app.example
    https://app.example:x https://a.example,https://b.example https://app.example?q""".split(),
)
def test_what_is_no_origin_cannot(text: str) -> None:
    assert not is_origin(text)
