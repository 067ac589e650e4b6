"""The request side as a transcript: events in, commands out, and the turn that is opened beside recall."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extproc.edge_trust import EdgeTrust
from extproc.exchange import OpenTurn, TurnSeed, opened_turn
from extproc.identity import Headers, IdentityMode, RefusalReason
from extproc.inject import (
    Command,
    CountPassed,
    CountRefused,
    CountRequest,
    Finish,
    Injection,
    OutOfOrder,
    Proceed,
    Recalled,
    RecallMemories,
    Reject,
    RequestBody,
    RequestHeaders,
    ResponseInfo,
)
from extproc.observe import Observation
from memory.model import CHAT_BYTES_MAX, HEAVY_BODY_BYTES, ChainLink, Note, Placement, RecallStatus, Scope
from memory.recall.signals.upstream import UpstreamSignals
from memory.recall.stages import RecallOutcome

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "What is my cat called?"}]}
ALICE = ("x-authz-user-id", b"alice")
NOTHING = Recalled(RecallOutcome(RecallStatus.EMPTY, "nothing"))
WANTED, PASSED = Proceed(wants_body=True), Proceed(wants_body=False)


def headers(*more: tuple[str, bytes], method: bytes = b"POST", path: bytes = b"/v1/chat/completions") -> Headers:
    return [(":method", method), (":path", path), ("content-type", b"application/json"), *more]


def injection_of(mode: IdentityMode = IdentityMode.DEVELOPMENT) -> Injection:
    return Injection(EdgeTrust(mode))


def awaiting_body(*more: tuple[str, bytes]) -> Injection:
    injection = injection_of()
    assert injection.on(RequestHeaders(headers(*more))) == [WANTED]
    return injection


def body_of(**more: object) -> bytes:
    return json.dumps({**ASK, **more}).encode()


def recall_for(injection: Injection, **more: object) -> RecallMemories:
    [recall] = injection.on(RequestBody(body_of(**more), 5.0))
    assert isinstance(recall, RecallMemories)
    return recall


def finished(injection: Injection, recalled: Recalled = NOTHING) -> Finish:
    [finish] = injection.on(recalled)
    assert isinstance(finish, Finish)
    return finish


def without_fields(body: bytes | None) -> Any:
    assert body is not None
    assert b"memory_" not in body
    return json.loads(body)


def test_a_question_is_recalled_and_leaves_with_the_note_and_without_our_fields() -> None:
    injection = awaiting_body()
    recall = recall_for(injection, memory_context={"user_id": "alice", "project_id": "p"})
    assert recall.scope == Scope("alice", "p")
    assert recall.request.conversation is not None
    found = RecallOutcome(RecallStatus.USED, "found", 1, "r1", (Note("The cat is called Miu."),))
    finish = finished(injection, Recalled(found))
    assert finish.receipt == ResponseInfo(RecallStatus.USED, 1, "r1", Placement.SYSTEM)
    sent = without_fields(finish.body)
    assert sent["messages"][-1] == ASK["messages"][0]
    assert "Miu" in sent["messages"][0]["content"]


TALK = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "What is my cat called?"},
]
SYSTEM = {"role": "system", "content": "Be kind."}
NOTE = "The cat is called Miu."


@pytest.mark.parametrize(
    ("messages", "notes", "placement"),
    [
        (TALK, (Note(NOTE, 0), Note(NOTE, 2)), Placement.BEFORE_LAST_USER),
        ([{**SYSTEM, "role": "developer"}, *TALK], (Note(NOTE),), None),
        ([SYSTEM, *TALK], (Note(NOTE, 0),), Placement.SYSTEM),
    ],
)
def test_a_receipt_says_where_a_template_might_refuse_the_note(
    messages: list[dict[str, str]], notes: tuple[Note, ...], placement: Placement | None
) -> None:
    injection = awaiting_body(ALICE)
    recall_for(injection, messages=messages)
    finish = finished(injection, Recalled(RecallOutcome(RecallStatus.USED, "found", 1, "r1", notes)))
    assert finish.receipt == ResponseInfo(RecallStatus.USED, 1, "r1", placement)


def test_what_filters_ahead_say_goes_to_recall() -> None:
    injection = injection_of()
    said = {"memory.signals": {"intent": "search"}, "other": {"intent": "skip"}}
    injection.on(RequestHeaders(headers(ALICE, ("x-memory-intent", b"tool")), metadata=said))
    assert recall_for(injection).upstream == UpstreamSignals("search", "memory.signals:intent")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"memory_context": {"project_id": "p"}}, "no_identity"),
        ({"memory_config": {"enabled": True}}, "no_identity"),
        ({"memory_context": {"user_id": "alice"}, "memory_config": {"enabled": False}}, "disabled"),
        ({"memory_context": {"user_id": "alice"}, "memory_config": {"enabled": "yes"}}, "not_understood"),
        ({"memory_context": {"user_id": "alice"}, "auto_store": "no"}, "not_understood"),
        *(
            ({"memory_context": {"user_id": "alice"}, "messages": messages}, "no_conversation")
            for messages in (None, [], "hello", [1], {"role": "user"})  # the upstream's to judge
        ),
    ],
)
def test_our_fields_are_stripped_even_where_memory_does_nothing(fields: dict[str, object], reason: str) -> None:
    *_, count, finish = awaiting_body().on(RequestBody(body_of(**fields)))
    assert count == CountRequest(RecallStatus.DISABLED, reason)
    assert isinstance(finish, Finish)
    assert finish.receipt == ResponseInfo(RecallStatus.DISABLED)
    assert without_fields(finish.body) == {"model": "m", "messages": fields.get("messages", ASK["messages"])}


@pytest.mark.parametrize(
    ("more", "body", "counted"),
    [
        (ALICE, b"hello", [CountPassed("not_json")]),
        (ALICE, b"[]", [CountPassed("not_an_object")]),
        (ALICE, b"\xff\xfe", [CountPassed("not_utf8")]),
        (("x-authz-user-id", b"\xff"), body_of(), [CountRefused(RefusalReason.INVALID_HEADER)]),
        *((("x", b""), body_of(user=user), []) for user in (" alice", "", 7)),
        (("x", b""), body_of(metadata=["user_id"]), []),
    ],
)
def test_no_chat_or_nobody_passes_byte_for_byte(more: tuple[str, bytes], body: bytes, counted: list[Command]) -> None:
    assert awaiting_body(more).on(RequestBody(body)) == [*counted, Finish(None, None)]


@pytest.mark.parametrize(
    ("sent", "is_end", "commands"),
    [
        (headers(ALICE, ("content-length", b"%d" % CHAT_BYTES_MAX)), False, [WANTED]),
        (headers(ALICE, ("content-length", b"%d" % (CHAT_BYTES_MAX + 1))), False, [CountPassed("too_large"), PASSED]),
        (headers(ALICE, ("content-length", b"9" * 30)), False, [CountPassed("too_large"), PASSED]),
        (headers(ALICE, ("content-encoding", b"gzip")), False, [CountPassed("content_encoding"), PASSED]),
        (headers(ALICE, ("content-encoding", b"Identity")), False, [WANTED]),
        (headers(ALICE, ("x", b"\xff")), False, [WANTED]),
        (headers(path=b"/v1/chat/completions?api-version=1"), False, [WANTED]),
        (headers(method=b"GET"), False, [PASSED]),
        *((headers(path=path), False, [PASSED]) for path in (b"/v1/rerank", b"/v1/chat/complet")),
        (headers(), True, [PASSED]),  # without a body
    ],
)
def test_the_body_of_a_chat_we_could_read_is_wanted(sent: Headers, commands: list[Command], *, is_end: bool) -> None:
    assert injection_of().on(RequestHeaders(sent, is_end=is_end)) == commands


def test_only_large_bodies_are_heavy() -> None:
    injection = awaiting_body(ALICE)
    large = RequestBody(body_of(padding="x" * HEAVY_BODY_BYTES))
    assert not injection.is_heavy(RequestHeaders(headers()))
    assert not injection.is_heavy(RequestBody(body_of()))
    assert injection.is_heavy(large)
    injection.on(large)
    assert injection.is_heavy(NOTHING)


def test_events_out_of_order_are_our_own_mistake() -> None:
    with pytest.raises(OutOfOrder, match="RequestBody while AWAIT_HEADERS"):
        injection_of().on(RequestBody(b"{}"))
    with pytest.raises(OutOfOrder, match="Recalled while AWAIT_BODY"):
        awaiting_body().on(NOTHING)


@pytest.mark.parametrize(("more", "user"), [((), "bob"), ((("x-authz-user-id", b" alice"),), "alice")])
def test_a_claim_that_nobody_vouches_for_is_no_contradiction(more: tuple[tuple[str, bytes], ...], user: str) -> None:
    injection = Injection(EdgeTrust(IdentityMode.HEADER, rejects_mismatches=True))
    injection.on(RequestHeaders(headers(*more)))
    assert Reject() not in injection.on(RequestBody(body_of(memory_context={"user_id": user})))


@pytest.mark.parametrize("named", [{"metadata": {"user_id": "alice"}, "user": "bob"}, {"user": "alice"}])
def test_in_development_alone_the_api_s_own_fields_name_the_user_and_they_stay(named: dict[str, object]) -> None:
    injection = awaiting_body()
    assert recall_for(injection, temperature=0.70, **named).scope == Scope("alice")
    assert finished(injection) == Finish(None, ResponseInfo(RecallStatus.EMPTY)), "without a note every byte stays"
    injection = injection_of(IdentityMode.HEADER)
    injection.on(RequestHeaders(headers()))
    assert injection.on(RequestBody(body_of(**named))) == [Finish(None, None)]


# The turn


EXCHANGE = ("x-request-id", b"e1")


def opening_of(*more: tuple[str, bytes], turn_id: str = "spare", **fields: object) -> tuple[Injection, OpenTurn | None]:
    injection = Injection(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed(turn_id) if turn_id else None)
    injection.on(RequestHeaders(headers(ALICE, *more)))
    return injection, recall_for(injection, **fields).opening


def test_what_a_user_says_is_opened_beside_recall_as_the_observer_would() -> None:
    _, opening = opening_of(EXCHANGE)
    assert opening is not None
    watch = Observation(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed("t1"))
    watch.on_request_headers(headers(ALICE, EXCHANGE))
    watch.on_request_body(body_of(), is_end=True, at=5.0)
    assert watch.read_request() == opening
    assert opening.turn.id not in ("spare", "t1")


def test_only_the_same_words_of_the_same_user_in_the_same_exchange_are_the_same_turn() -> None:
    """A client may choose the id of an exchange, and always the same."""
    other_words = [{"role": "user", "content": "And my dog?"}]
    asked: list[tuple[tuple[str, bytes], dict[str, object]]] = [
        (EXCHANGE, {}),
        (EXCHANGE, {"temperature": 0}),
        (EXCHANGE, {"messages": other_words}),
        (EXCHANGE, {"memory_context": {"session_id": "s"}}),
        (EXCHANGE, {"memory_context": {"project_id": "p"}}),
        (("x-request-id", b"e2"), {}),
        (("x-no-id", b"e1"), {}),
    ]
    ids = [opening.turn.id for more, fields in asked if (opening := opening_of(more, **fields)[1]) is not None]
    assert len(ids) == len(asked)
    assert len(set(ids)) == len(ids) - 1
    assert ids[0] == ids[1]
    assert ids[-1] == "spare"


@pytest.mark.parametrize(
    ("turn_id", "fields"),
    [
        ("", {}),  # nothing is recorded at all
        ("t", {"memory_config": {"auto_store": False}}),
        ("t", {"messages": [{"role": "user", "content": " "}]}),
        ("t", {"messages": [*ASK["messages"], {"role": "assistant", "content": "Miu"}]}),
    ],
)
def test_what_is_not_to_be_recorded_or_not_new_is_not_opened(turn_id: str, fields: dict[str, object]) -> None:
    injection, opening = opening_of(EXCHANGE, turn_id=turn_id, **fields)
    assert opening is None
    assert finished(injection).receipt == ResponseInfo(RecallStatus.EMPTY)


@pytest.mark.parametrize("tools", [[], [{"type": "function", "function": {"name": "weather"}}]])
def test_the_observer_is_told_of_a_turn_that_is_open_and_how_it_may_be_continued(tools: list[object]) -> None:
    injection, opening = opening_of(tools=tools)
    assert opening is not None
    link = ChainLink("s", opening.turn.id)
    receipt = finished(injection, Recalled(NOTHING.found, link)).receipt
    assert receipt is not None
    opened = receipt.opened
    assert opened is not None
    assert opened_turn(opened.mark()) == opened
    assert (opened.link, opened.model, opened.names is not None) == (link, "m", bool(tools))
    assert "cat" not in opened.mark()
