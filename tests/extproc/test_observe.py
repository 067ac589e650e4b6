"""Transcripts of exchanges, and the turns that come of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from response_objects import response_object, text_item

from extproc.edge_trust import EdgeTrust
from extproc.exchange import MARK_BYTES_MAX, CloseTurn, LeaveOut, LinkNames, OpenedTurn, OpenTurn, TurnSeed
from extproc.identity import Headers, IdentityMode, Metadata
from extproc.observe import Observation
from extproc.reply import REPLY_BYTES_MAX
from extproc.turn_links import Links
from memory.model import CHAT_BYTES_MAX, ChainLink, Message, Scope, SentExchange, Turn, TurnStatus

POST: Headers = [(":method", b"POST"), (":path", b"/v1/chat/completions"), ("x-authz-user-id", b"ann")]
OK: Headers = [(":status", b"200"), ("content-type", b"text/event-stream")]
TALK = [{"role": role, "content": text} for role, text in (("user", "Hi"), ("assistant", "Hello"), ("user", "So"))]
RECEIPT: Metadata = {"memory": {"receipt": "r1", "status": "used"}, "other": {"receipt": "no"}}

ANSWER = "Dein Budget beträgt 10.000 € 🏝"
STREAM = (
    "".join(
        f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': piece}}]}, ensure_ascii=False)}\r\n\r\n"
        for piece in (ANSWER[:9], ANSWER[9:], "")
    )
    + "data: [DONE]\n\n"
).encode()


def body(*messages: dict[str, Any], **fields: Any) -> bytes:
    listed = messages or ({"role": "user", "content": "My budget is 10.000 €."},)
    return json.dumps({"model": "m", "messages": listed, **fields}, ensure_ascii=False).encode()


def observation(turn_id: str = "t1") -> Observation:
    return Observation(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed(turn_id))


def unread(request: bytes, headers: Headers = POST, *, turn_id: str = "t1") -> Observation:
    """One whose request is complete, and read by nobody."""
    watch = observation(turn_id)
    watch.on_request_headers(headers)
    watch.on_request_body(request, is_end=True, at=5.0)
    return watch


def opening(request: bytes, headers: Headers = POST, *, turn_id: str = "t1") -> OpenTurn | LeaveOut | None:
    watch = unread(request, headers, turn_id=turn_id)
    event = watch.read_request()
    if event is None or isinstance(event, LeaveOut):
        assert watch.on_response_headers(OK, RECEIPT, at=6.0) is None
        assert watch.is_idle
        assert watch.on_end(at=9.0) is None
    else:
        assert not watch.is_idle
    return event


def opened(request: bytes, headers: Headers = POST) -> Turn | None:
    event = opening(request, headers)
    return event.turn if isinstance(event, OpenTurn) else None


def asked() -> Observation:
    """One whose request is read."""
    watch = unread(body())
    assert watch.read_request()
    return watch


def replied(pieces: Sequence[bytes], *, headers: Headers = OK, is_whole: bool = True) -> CloseTurn | None:
    """How a turn ends when the reply comes in these pieces, and then ends, or breaks off."""
    watch = asked()
    assert watch.on_response_headers(headers, RECEIPT, at=2.0) is None
    closed = None
    for piece in pieces:
        assert closed is None
        closed = watch.on_response_body(piece, is_end=False, at=2.0)
    closed = watch.on_response_body(b"", is_end=True, at=3.0) if is_whole else watch.on_end(at=3.0)
    assert watch.on_end(at=9.0) is None
    return closed


# What is recorded of a request


def test_a_turn_is_what_the_user_says_for_the_first_time() -> None:
    request = body(
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "I have a cat."},
        {"role": "user", "content": "Her name is Mochi."},
        memory_context={"user_id": "ann", "project_id": "p", "session_id": "s", "agent_id": "a"},
    )
    headers = [*POST, ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
    assert opened(request, headers) == Turn(
        id="t1",
        scope=Scope("ann", "p", "s", "a"),
        at=5.0,
        messages=(Message("user", "I have a cat."), Message("user", "Her name is Mochi.")),
        model="m",
        trace_id="0af7651916cd43dd8448eb211c80319c",
    )


def test_a_request_without_a_session_id_proposes_a_new_one_and_says_what_it_continues() -> None:
    first, other = (opening(body({"role": "user", "content": "Hi"}), turn_id=name) for name in ("t1", "t2"))
    assert isinstance(first, OpenTurn)
    assert isinstance(other, OpenTurn)
    assert first.turn.scope.session_id != other.turn.scope.session_id  # two conversations may begin alike
    assert not first.sent.is_session_given
    later = opening(body(*TALK))
    assert isinstance(later, OpenTurn)
    assert [exchange.key for exchange in later.sent.earlier] == list(first.sent.keys)
    assert opening(body(*TALK), headers=[*POST[:2], ("x-authz-user-id", b"bob")]) != later


@pytest.mark.parametrize("config", [{"auto_store": False}, {"enabled": False}])
def test_what_must_not_be_recorded_is_left_out_of_later_requests_as_well(config: dict[str, bool]) -> None:
    recorded = opening(body())
    assert isinstance(recorded, OpenTurn)
    exchange = SentExchange(recorded.sent.keys[-1], recorded.turn.messages, "")
    assert opening(body(memory_config=config)) == LeaveOut("ann", exchange)


WRONG_IDS = {"user_id": "bob", "project_id": "p\u200b", "session_id": "\ud800"}


@pytest.mark.parametrize(
    "fields",
    [
        *({"memory_config": one} for one in ({"auto_store": False}, {"enabled": False}, {"auto_store": "no"}, 5)),
        {"memory_context": "ann"},
        *({"memory_context": {name: one}} for name, one in WRONG_IDS.items()),
    ],
)
def test_who_forbids_it_or_contradicts_himself_is_not_recorded(fields: dict[str, Any]) -> None:
    request = json.dumps({"messages": [{"role": "user", "content": "I have a cat."}], **fields}).encode()
    assert opened(request) is None


def test_who_only_forbids_recall_by_placement_is_still_recorded_whatever_the_query() -> None:
    headers = [POST[0], (":path", b"/v1/chat/completions?api-version=1"), POST[2]]
    assert opened(body(memory_config={"placement": "off"}), headers) is not None


def test_nobody_is_not_recorded_and_not_listened_to_any_longer_also_within_a_conversation() -> None:
    for messages in ((), TALK):
        watch = unread(body(*messages), POST[:2])
        assert watch.read_request() is None
        assert watch.is_idle


@pytest.mark.parametrize(
    ("request_body", "headers"),
    [
        *((one, POST) for one in (b"", b"hello", b"[]", b"{}", b'{"messages":5}', gzip.compress(body(), mtime=0))),
        (body(), [(":method", b"GET"), *POST[1:]]),
        *(
            (body(), [POST[0], (":path", path), POST[2]])
            for path in (b"/v1/responses", b"/v1/completions", b"/v1/chat/completions/x")
        ),
        (body(), [*POST, ("content-encoding", b"gzip")]),
        (body(), []),
    ],
)
def test_what_is_no_chat_is_not_recorded(request_body: bytes, headers: Headers) -> None:
    assert opened(request_body, headers) is None


def test_a_request_without_a_body_is_not_recorded() -> None:
    watch = observation()
    watch.on_request_headers(POST, is_end=True)
    assert watch.is_idle
    watch.on_request_body(body(), is_end=True, at=1.0)
    assert watch.read_request() is None


def test_a_request_past_the_bound_is_not_kept() -> None:
    watch = observation()
    watch.on_request_headers(POST)
    half = b" " * (CHAT_BYTES_MAX // 2)
    watch.on_request_body(half, is_end=False, at=1.0)
    watch.on_request_body(half, is_end=False, at=1.0)
    assert not watch.is_idle
    assert watch.is_request_large
    watch.on_request_body(body(), is_end=True, at=1.0)
    assert watch.is_idle
    assert not watch.is_request_large


# How it ends


JSON_REPLY = json.dumps({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}).encode()


@pytest.mark.parametrize(
    ("code", "reply", "is_whole", "status", "answer"),
    [
        (b"200", STREAM, True, TurnStatus.CLOSED, ANSWER),
        (b"200", STREAM, False, TurnStatus.CLOSED, ANSWER),  # the client hangs up after [DONE]
        (b"200", STREAM[:100], True, TurnStatus.ABORTED, ""),
        (b"200", STREAM[:100], False, TurnStatus.ABORTED, ""),
        (b"200", JSON_REPLY, False, TurnStatus.ABORTED, ""),
        *((code, STREAM, whole, TurnStatus.FAILED, "") for code in (b"400", b"503", b"") for whole in (True, False)),
    ],
)
def test_a_turn_closes_with_its_whole_answer_and_fails_or_is_aborted_without(
    code: bytes, reply: bytes, status: TurnStatus, answer: str, *, is_whole: bool
) -> None:
    closed = replied([reply], headers=[(":status", code), *OK[1:]], is_whole=is_whole)
    assert closed == CloseTurn("t1", status, answer, 3.0, "r1")


def test_a_reply_without_a_body_closes_at_its_headers() -> None:
    watch = asked()
    closed = watch.on_response_headers([(":status", b"503")], {}, at=2.0, is_end=True)
    assert closed == CloseTurn("t1", TurnStatus.FAILED, "", 2.0)
    assert watch.on_end(at=9.0) is None


def test_no_reply_at_all_aborts_the_turn() -> None:
    watch = asked()
    assert watch.on_end(at=2.0) == CloseTurn("t1", TurnStatus.ABORTED, "", 2.0)
    assert watch.on_end(at=3.0) is None


def test_a_request_that_breaks_off_is_no_turn() -> None:
    watch = observation()
    watch.on_request_headers(POST)
    watch.on_request_body(body()[:-1], is_end=False, at=1.0)
    assert watch.read_request() is None
    assert watch.on_end(at=2.0) is None
    watch.on_request_body(b"}", is_end=True, at=3.0)
    assert watch.read_request() is None


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_reply_past_the_bound_is_not_kept_but_its_turn_ends(*, is_whole: bool) -> None:
    pieces = [STREAM[:50]] + [b"x" * (1 << 16)] * (REPLY_BYTES_MAX >> 16) + [STREAM]
    status = TurnStatus.CLOSED if is_whole else TurnStatus.ABORTED
    assert replied(pieces, is_whole=is_whole) == CloseTurn("t1", status, "", 3.0, "r1", is_over_cap=True)


@pytest.mark.parametrize("is_begun", [False, True])
def test_an_answer_before_the_end_of_the_request_as_of_envoy_is_nobody_s_turn(*, is_begun: bool) -> None:
    watch = observation()
    if is_begun:
        watch.on_request_headers(POST)
        watch.on_request_body(b"{", is_end=False, at=1.0)
    assert watch.on_response_headers([(":status", b"413")], {}, at=1.0) is None
    assert watch.is_idle
    watch.on_request_body(body(), is_end=True, at=1.0)
    assert watch.read_request() is None
    assert watch.on_response_body(b"too large", is_end=True, at=1.0) is None
    assert watch.on_end(at=2.0) is None


@pytest.mark.parametrize("metadata", [{}, {"memory": {}}, {"memory": {"receipt": 5}}, {"other": {"receipt": "r"}}])
def test_a_turn_without_a_receipt_has_none(metadata: Metadata) -> None:
    watch = asked()
    watch.on_response_headers(OK, metadata, at=2.0)
    assert watch.on_response_body(STREAM, is_end=True, at=3.0) == CloseTurn("t1", TurnStatus.CLOSED, ANSWER, 3.0, "")


# What inject has opened


OPENED = OpenedTurn(ChainLink("s", "t9", ("k0",)), "m")


def left(opened: OpenedTurn) -> Metadata:
    return {"memory": {"receipt": "r1", "turn": opened.mark()}}


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_turn_that_inject_has_opened_is_closed_without_reading_the_request(*, is_dropped: bool) -> None:
    watch = unread(body())
    if is_dropped:
        watch.drop_request()
    assert watch.on_left(left(OPENED)) == OPENED.link
    assert watch.read_request() is None
    watch.on_response_headers(OK, left(OPENED), at=2.0)
    assert watch.on_response_body(STREAM, is_end=True, at=3.0) == CloseTurn("t9", TurnStatus.CLOSED, ANSWER, 3.0, "r1")


def test_a_turn_that_inject_has_opened_is_found_by_the_response_that_answers_it() -> None:
    watch = unread(body(), [POST[0], (":path", b"/v1/responses"), POST[2]])
    watch.on_left(left(replace(OPENED, names=LinkNames(Scope("ann"), "conv_1"))))
    watch.on_response_headers(OK, {"memory": {"note_keys": "k1"}}, at=2.0)
    closed = watch.on_response_body(json.dumps(response_object([text_item("Hi")])).encode(), is_end=True, at=3.0)
    assert isinstance(closed, CloseTurn)
    assert closed.links == Links("ann", "", ("k1",), ("resp_1", "conv_1"))


@pytest.mark.parametrize("mark", [None, 5.0, "", "t9", "{}", '{"link": {"session_id": "s"}, "model": "m"}'])
def test_what_is_no_mark_leaves_the_request_to_be_read(mark: object) -> None:
    watch = unread(body())
    assert watch.on_left({"memory": {"turn": mark}}) is None
    assert isinstance(watch.read_request(), OpenTurn)


@pytest.mark.parametrize("model", ["m" * MARK_BYTES_MAX, "\ud800"])
def test_what_fits_no_metadata_is_no_mark(model: str) -> None:
    assert replace(OPENED, model=model).mark() == ""


def test_a_request_that_nobody_had_time_for_is_not_recorded_unless_inject_has_done_it() -> None:
    watch = unread(body())
    watch.drop_request()
    assert watch.on_left({}) is None
    assert watch.read_request() is None
    assert watch.is_idle


def cut(whole: bytes, places: Sequence[int], *, is_end_apart: bool) -> list[tuple[bytes, bool]]:
    """The pieces, each with whether it is the last."""
    ends = [0, *sorted(place % (len(whole) + 1) for place in places), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(ends)] + [b""] * is_end_apart
    return [(piece, number == len(pieces)) for number, piece in enumerate(pieces, start=1)]


cuts = st.lists(st.integers(0, 10_000), max_size=20)


@given(request_cuts=cuts, reply_cuts=cuts, is_end_apart=st.booleans(), is_packed=st.booleans())
def test_it_does_not_matter_where_bodies_are_cut(
    *, request_cuts: list[int], reply_cuts: list[int], is_end_apart: bool, is_packed: bool
) -> None:
    watch = observation()
    watch.on_request_headers(POST)
    for piece, is_end in cut(body(), request_cuts, is_end_apart=is_end_apart):
        watch.on_request_body(piece, is_end=is_end, at=1.0)
    opening = watch.read_request()
    assert isinstance(opening, OpenTurn)
    assert opening.turn.messages == (Message("user", "My budget is 10.000 €."),)
    watch.on_response_headers([*OK, ("content-encoding", b"gzip")] if is_packed else OK, {}, at=2.0)
    pieces = cut(gzip.compress(STREAM) if is_packed else STREAM, reply_cuts, is_end_apart=is_end_apart)
    *before, closing = [watch.on_response_body(piece, is_end=is_end, at=3.0) for piece, is_end in pieces]
    assert not any(before)
    assert closing == CloseTurn("t1", TurnStatus.CLOSED, ANSWER, 3.0)
