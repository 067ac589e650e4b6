"""What is believed of a request: which are without memory, for both filters alike, and what filters ahead say."""

from __future__ import annotations

import json
from typing import get_args, get_type_hints

import pytest

from extproc.edge_trust import EdgeTrust, SignalReader, signal_reader, switched_off
from extproc.exchange import LeaveOut, TurnSeed
from extproc.identity import IdentityMode
from extproc.inject import CountRequest, Finish, Injection, Proceed, RequestBody, RequestHeaders
from extproc.observe import Observation
from memory.errors import BadSetting
from memory.model import RecallStatus
from memory.recall.signals.upstream import DEFAULT_RULES, MEANINGS, NO_SIGNALS, UpstreamSignals
from memory.settings import OffRoute, UpstreamSignal

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
        *((values, "") for values in ([], [b"on"], [b" ON "], [b""])),
        *((values, "header_off") for values in ([b"off"], [b"false"], [b"\xff"], [b"on", b"off"])),
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
def test_such_a_request_is_stripped_not_recalled_and_not_recorded(sent: list[tuple[str, bytes]], reason: str) -> None:
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


# Filters ahead


RULES = (
    UpstreamSignal(name="X-Topic", values=("Weather ", "sports"), means="general_fact"),
    UpstreamSignal(name="x-anything", means="skip"),
    UpstreamSignal(name="Router.Out:class:Name", values=("personal",), means="personal"),
    UpstreamSignal(name="Router.Out:is_tool", values=("true",), means="tool"),
)
READER = signal_reader(RULES)


def test_the_setting_takes_every_meaning_that_recall_knows() -> None:
    reader = signal_reader([UpstreamSignal(name="x", values=(one,), means=str(one)) for one in MEANINGS])  # type: ignore[arg-type]
    assert [reader.read_signals([("x", str(one).encode())], {}).means for one in MEANINGS] == list(MEANINGS)
    assert set(get_args(get_type_hints(UpstreamSignal)["means"])) == set(MEANINGS)


def test_without_a_setting_the_built_in_rules_hold_and_an_empty_one_hears_nobody() -> None:
    assert signal_reader(None).rules == DEFAULT_RULES
    assert "x-memory-intent" in signal_reader(None).headers
    assert signal_reader(None).namespaces == ("memory.signals",)
    deaf = signal_reader(())
    assert (deaf.headers, deaf.namespaces) == ((), ())
    assert deaf.read_signals([("x-memory-intent", b"skip")], {"memory.signals": {"intent": "skip"}}) == NO_SIGNALS


@pytest.mark.parametrize(
    ("name", "values", "means"),
    [
        *(("x-topic", [one], "general_fact") for one in (b"weather", b"WEATHER", b"news, sports")),
        ("x-topic", [b"news", b"sports"], "general_fact"),
        *(("x-topic", [one], "") for one in (b"news", b"", b"\xff\xfe")),
        ("x-anything", [b"7"], "skip"),  # its rule has no values
    ],
)
def test_a_header_is_a_list_of_words_wherever_it_is_cut(name: str, values: list[bytes], means: str) -> None:
    expected = UpstreamSignals(means, name) if means else NO_SIGNALS
    assert READER.read_signals([(name, value) for value in values], {}) == expected


@pytest.mark.parametrize(
    ("left", "means"),
    [
        ({"class:Name": "personal"}, "personal"),
        ({"class:Name": ["task", "personal", 1.0]}, "personal"),
        ({"is_tool": True}, "tool"),
        ({"is_tool": False}, ""),
        ({"class:Name": {"personal": 1.0}}, ""),
        ({"class:Name": None, "is_tool": 1.0}, ""),
    ],
)
def test_metadata_speaks_as_text_list_or_truth(left: dict[str, object], means: str) -> None:
    assert READER.read_signals([], {"Router.Out": left, "other": {"is_tool": True}}).means == means


def test_no_name_is_read_that_no_rule_names() -> None:
    said = [("x-memory-intent", b"skip"), ("x-disable-router-memory", b"true")]
    assert READER.read_signals(said, {"memory.signals": {"intent": "skip"}}) == NO_SIGNALS
    assert SignalReader().read_signals(said, {}).means == "skip"
