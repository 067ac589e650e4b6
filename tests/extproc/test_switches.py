"""Which requests are without memory by a header or by their route, for both filters alike."""

from __future__ import annotations

import json

import pytest

from extproc.edge_trust import EdgeTrust, switched_off
from extproc.exchange import LeaveOut, TurnSeed
from extproc.identity import IdentityMode
from extproc.inject import CountRequest, Finish, Injection, Proceed, RequestBody, RequestHeaders
from extproc.observe import Observation
from memory.errors import BadSetting
from memory.model import RecallStatus
from memory.settings import OffRoute

BODY = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "I live in Ulm."}], "memory_context": {"user_id": "ann"}}
).encode()
GUESTS = OffRoute.parsed("guests.example.com/")


def headers(*more: tuple[str, bytes], host: str = "chat.example.com") -> list[tuple[str, bytes]]:
    path = b"/v1/chat/completions?trace=1"
    return [(":method", b"POST"), (":authority", host.encode()), (":path", path), ("x-authz-user-id", b"ann"), *more]


@pytest.mark.parametrize(
    ("route", "host", "path", "is_off"),
    [
        ("/v1/responses", "a", "/v1/responses", True),
        ("/v1/responses", "a", "/v1/responses/r1", True),
        ("/v1/responses", "a", "/v1/responsesX", False),
        ("/v1/responses/", "a", "/v1/responses", True),
        ("/", "a", "/v1/responses", True),
        ("guests.example.com/", "guests.example.com", "/v1/responses", True),
        ("guests.example.com/", "Guests.EXAMPLE.com:8080", "/v1/responses", True),
        ("Guests.example.com./", "guests.example.com", "/x", True),
        ("guests.example.com:8443/", "guests.example.com", "/x", False),
        ("guests.example.com:8443/", "guests.example.com:8443", "/x", True),
        ("guests.example.com/", "xguests.example.com", "/x", False),
        ("guests.example.com/v1/responses", "guests.example.com", "/v1/chat/completions", False),
        ("[::1]/", "[::1]:80", "/x", True),
    ],
)
def test_a_route_is_a_host_and_a_path_with_all_below_it(route: str, host: str, path: str, *, is_off: bool) -> None:
    assert OffRoute.parsed(route).matches(host, path) is is_off


@pytest.mark.parametrize("text", ["", "guests.example.com", "/a b", "/a?b=c", "/a#b"])
def test_what_is_no_route_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(BadSetting, match="off_routes"):
        OffRoute.parsed(text)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], ""),
        ([b"on"], ""),
        ([b" ON "], ""),
        ([b""], ""),
        ([b"off"], "header_off"),
        ([b"false"], "header_off"),
        ([b"\xff"], "header_off"),
        ([b"on", b"off"], "header_off"),
    ],
)
def test_a_header_can_only_take_memory_away(values: list[bytes], reason: str) -> None:
    sent = [("x-memory", value) for value in values]
    assert switched_off(headers(*sent), [GUESTS]) == reason
    assert switched_off(headers(*sent, host="guests.example.com"), [GUESTS])


@pytest.mark.parametrize(
    ("sent", "reason"),
    [(headers(("x-memory", b"off")), "header_off"), (headers(host="guests.example.com"), "route_off")],
)
def test_such_a_request_is_stripped_and_neither_recalled_nor_recorded(
    sent: list[tuple[str, bytes]], reason: str
) -> None:
    injection = Injection(EdgeTrust(IdentityMode.HEADER, off_routes=[GUESTS]))
    assert injection.on(RequestHeaders(sent)) == [Proceed(wants_body=True)]
    count, finish = injection.on(RequestBody(BODY))
    assert count == CountRequest(RecallStatus.DISABLED, reason)
    assert isinstance(finish, Finish)
    assert finish.body is not None
    assert b"memory_context" not in finish.body
    watch = Observation(EdgeTrust(IdentityMode.HEADER, off_routes=[GUESTS]), seed=TurnSeed("t1"))
    watch.on_request_headers(sent)
    watch.on_request_body(BODY, is_end=True, at=1.0)
    assert isinstance(watch.read_request(), LeaveOut)
    assert watch.is_idle
