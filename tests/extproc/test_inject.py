"""The request side as a transcript: events in, commands out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extproc.edge_trust import EdgeTrust
from extproc.identity import IdentityMode, RefusalReason
from extproc.inject import (
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
from memory.model import CHAT_BYTES_MAX, HEAVY_BODY_BYTES, Note, Placement, RecallStatus, Scope
from memory.recall.signals.upstream import UpstreamSignals
from memory.recall.stages import RecallOutcome

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "What is my cat called?"}]}
ALICE = ("x-authz-user-id", b"alice")
NOTHING = Recalled(RecallOutcome(RecallStatus.EMPTY, "nothing"))


def headers(
    *more: tuple[str, bytes], method: bytes = b"POST", path: bytes = b"/v1/chat/completions"
) -> list[tuple[str, bytes]]:
    return [(":method", method), (":path", path), ("content-type", b"application/json"), *more]


def injection_of(mode: IdentityMode = IdentityMode.DEVELOPMENT) -> Injection:
    return Injection(EdgeTrust(mode))


def awaiting_body(*more: tuple[str, bytes], path: bytes = b"/v1/chat/completions") -> Injection:
    injection = injection_of()
    assert injection.on(RequestHeaders(headers(*more, path=path))) == [Proceed(wants_body=True)]
    return injection


def body_of(**more: object) -> bytes:
    return json.dumps({**ASK, **more}).encode()


def without_fields(body: bytes | None) -> Any:
    assert body is not None
    assert b"memory_" not in body
    return json.loads(body)


def test_a_question_is_recalled_and_leaves_with_the_note_and_without_our_fields() -> None:
    injection = awaiting_body()
    [recall] = injection.on(RequestBody(body_of(memory_context={"user_id": "alice", "project_id": "p"})))
    assert isinstance(recall, RecallMemories)
    assert recall.scope == Scope("alice", "p")
    assert recall.request.conversation is not None
    [finish] = injection.on(
        Recalled(RecallOutcome(RecallStatus.USED, "found", 1, "r1", (Note("The cat is called Miu."),)))
    )
    assert isinstance(finish, Finish)
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
    injection.on(RequestBody(body_of(messages=messages)))
    [finish] = injection.on(Recalled(RecallOutcome(RecallStatus.USED, "found", 1, "r1", notes)))
    assert isinstance(finish, Finish)
    assert finish.receipt == ResponseInfo(RecallStatus.USED, 1, "r1", placement)


def test_what_filters_ahead_say_goes_to_recall() -> None:
    injection = injection_of()
    said = {"memory.signals": {"intent": "search"}, "other": {"intent": "skip"}}
    injection.on(RequestHeaders(headers(ALICE, ("x-memory-intent", b"tool")), metadata=said))
    [recall] = injection.on(RequestBody(body_of()))
    assert isinstance(recall, RecallMemories)
    assert recall.upstream == UpstreamSignals("search", "memory.signals:intent")


def test_who_only_sends_the_header_and_has_no_note_keeps_every_byte() -> None:
    injection = awaiting_body(ALICE)
    injection.on(RequestBody(body_of(temperature=0.70)))
    assert injection.on(NOTHING) == [Finish(None, ResponseInfo(RecallStatus.EMPTY))]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"memory_context": {"project_id": "p"}}, "no_identity"),
        ({"memory_config": {"enabled": True}}, "no_identity"),
        ({"memory_context": {"user_id": "alice"}, "memory_config": {"enabled": False}}, "disabled"),
        ({"memory_context": {"user_id": "alice"}, "memory_config": {"enabled": "yes"}}, "not_understood"),
        ({"memory_context": {"user_id": "alice"}, "auto_store": "no"}, "not_understood"),
    ],
)
def test_our_fields_are_stripped_even_where_memory_does_nothing(fields: dict[str, object], reason: str) -> None:
    count, finish = awaiting_body().on(RequestBody(body_of(**fields)))
    assert count == CountRequest(RecallStatus.DISABLED, reason)
    assert isinstance(finish, Finish)
    assert finish.receipt == ResponseInfo(RecallStatus.DISABLED)
    assert without_fields(finish.body) == ASK


@pytest.mark.parametrize("body", [b"hello", b"[]", b"\xff\xfe"])
def test_a_body_that_is_not_what_it_claims_passes_untouched_and_is_counted(body: bytes) -> None:
    passed, finish = awaiting_body(ALICE).on(RequestBody(body))
    assert isinstance(passed, CountPassed)
    assert finish == Finish(None, None)


def test_a_refused_identity_without_our_fields_passes_byte_for_byte() -> None:
    injection = awaiting_body(("x-authz-user-id", b"\xff"))
    assert injection.on(RequestBody(body_of())) == [CountRefused(RefusalReason.INVALID_HEADER), Finish(None, None)]


@pytest.mark.parametrize("named", [{"user": " alice"}, {"user": ""}, {"user": 7}, {"metadata": ["user_id"]}])
def test_a_field_that_holds_no_id_names_nobody(named: dict[str, object]) -> None:
    assert awaiting_body().on(RequestBody(body_of(**named))) == [Finish(None, None)]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("content-length", str(CHAT_BYTES_MAX + 1).encode()), "too_large"),
        (("content-length", b"9" * 30), "too_large"),
        (("content-encoding", b"gzip"), "content_encoding"),
    ],
)
def test_a_body_that_we_could_not_read_anyway_is_not_asked_for(more: tuple[str, bytes], reason: str) -> None:
    injection = injection_of()
    assert injection.on(RequestHeaders(headers(ALICE, more))) == [CountPassed(reason), Proceed(wants_body=False)]


@pytest.mark.parametrize(
    "more", [("content-length", str(CHAT_BYTES_MAX).encode()), ("content-encoding", b"Identity"), ("x", b"\xff")]
)
def test_a_body_at_the_limit_is_read_whatever_the_query(more: tuple[str, bytes]) -> None:
    awaiting_body(ALICE, more, path=b"/v1/chat/completions?api-version=1")


@pytest.mark.parametrize(
    ("method", "path", "is_end"),
    [
        (b"GET", b"/v1/chat/completions", False),
        (b"POST", b"/v1/rerank", False),
        (b"POST", b"/v1/chat/complet", False),
        (b"POST", b"/v1/chat/completions", True),  # without a body
    ],
)
def test_what_we_do_not_understand_proceeds_without_us(method: bytes, path: bytes, *, is_end: bool) -> None:
    request = RequestHeaders(headers(method=method, path=path), is_end=is_end)
    assert injection_of().on(request) == [Proceed(wants_body=False)]


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


@pytest.mark.parametrize("messages", [None, [], "hello", [1], {"role": "user"}])
def test_messages_of_the_wrong_type_are_the_upstreams_to_judge_and_only_stripped(messages: object) -> None:
    *_, finish = awaiting_body().on(RequestBody(body_of(messages=messages, memory_context={"user_id": "alice"})))
    assert isinstance(finish, Finish)
    assert without_fields(finish.body) == {"model": "m", "messages": messages}


@pytest.mark.parametrize(("mode", "is_known"), [(IdentityMode.DEVELOPMENT, True), (IdentityMode.HEADER, False)])
@pytest.mark.parametrize("named", [{"metadata": {"user_id": "alice"}, "user": "bob"}, {"user": "alice"}])
def test_in_development_the_api_s_own_fields_name_the_user_and_stay(
    mode: IdentityMode, is_known: bool, named: dict[str, object]
) -> None:
    injection = injection_of(mode)
    injection.on(RequestHeaders(headers()))
    [command] = injection.on(RequestBody(body_of(**named)))
    if is_known:
        assert isinstance(command, RecallMemories)
        assert command.scope == Scope("alice")
        [command] = injection.on(NOTHING)
        assert isinstance(command, Finish)
    assert isinstance(command, Finish)
    assert command.body is None
