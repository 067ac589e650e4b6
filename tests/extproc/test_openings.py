"""Who opens a turn: inject beside recall, and the observer only where inject has left no word of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from response_objects import response_object, text_item

from extproc.edge_trust import EdgeTrust
from extproc.exchange import MARK_BYTES_MAX, CloseTurn, LinkNames, OpenedTurn, OpenTurn, TurnSeed, opened_turn
from extproc.identity import Headers, IdentityMode, Metadata
from extproc.inject import Finish, Injection, Recalled, RecallMemories, RequestBody, RequestHeaders, ResponseInfo
from extproc.observe import Observation
from extproc.turn_links import Links
from memory.model import ChainLink, RecallStatus, Scope, TurnStatus
from memory.recall.stages import RecallOutcome

POST: Headers = [(":method", b"POST"), (":path", b"/v1/chat/completions"), ("x-authz-user-id", b"ann")]
RESPONSES: Headers = [POST[0], (":path", b"/v1/responses"), POST[2]]
OK: Headers = [(":status", b"200"), ("content-type", b"application/json")]
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "What is my cat called?"}]}
REPLY = json.dumps({"choices": [{"message": {"content": "Miu"}, "finish_reason": "stop"}]}).encode()


def body_of(**more: object) -> bytes:
    return json.dumps({**ASK, **more}).encode()


# Inject


EXCHANGE = ("x-request-id", b"e1")


def opening_of(*more: tuple[str, bytes], turn_id: str = "spare", **fields: object) -> tuple[Injection, OpenTurn | None]:
    injection = Injection(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed(turn_id) if turn_id else None)
    injection.on(RequestHeaders([*POST, *more]))
    [recall] = injection.on(RequestBody(body_of(**fields), 5.0))
    assert isinstance(recall, RecallMemories)
    return injection, recall.opening


def test_what_a_user_says_is_opened_beside_recall_as_the_observer_would() -> None:
    _, opening = opening_of(EXCHANGE)
    assert opening is not None
    assert unread([*POST, EXCHANGE]).read_request() == opening
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
    [finish] = injection.on(Recalled(RecallOutcome(RecallStatus.EMPTY, "nothing")))
    assert isinstance(finish, Finish)
    assert finish.receipt == ResponseInfo(RecallStatus.EMPTY)


@pytest.mark.parametrize("tools", [[], [{"type": "function", "function": {"name": "weather"}}]])
def test_the_observer_is_told_of_a_turn_that_is_open_and_how_it_may_be_continued(tools: list[object]) -> None:
    injection, opening = opening_of(tools=tools)
    assert opening is not None
    link = ChainLink("s", opening.turn.id)
    [finish] = injection.on(Recalled(RecallOutcome(RecallStatus.EMPTY, "nothing"), link))
    assert isinstance(finish, Finish)
    assert finish.receipt is not None
    opened = finish.receipt.opened
    assert opened is not None
    assert opened_turn(opened.mark()) == opened
    assert (opened.link, opened.model, opened.names is not None) == (link, "m", bool(tools))
    assert "cat" not in opened.mark()


# The observer


def left(opened: OpenedTurn) -> Metadata:
    return {"memory": {"receipt": "r1", "turn": opened.mark()}}


OPENED = OpenedTurn(ChainLink("s", "t9", ("k0",)), "m")


def unread(headers: Headers = POST) -> Observation:
    watch = Observation(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed("t1"))
    watch.on_request_headers(headers)
    watch.on_request_body(body_of(), is_end=True, at=5.0)
    assert watch.is_unread
    return watch


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_turn_that_inject_has_opened_is_closed_without_reading_the_request(*, is_dropped: bool) -> None:
    watch = unread()
    if is_dropped:
        watch.drop_request()
    assert watch.on_left(left(OPENED)) == OPENED.link
    assert watch.read_request() is None
    watch.on_response_headers(OK, left(OPENED), at=2.0)
    assert watch.on_response_body(REPLY, is_end=True, at=3.0) == CloseTurn("t9", TurnStatus.CLOSED, "Miu", 3.0, "r1")


def test_a_turn_that_inject_has_opened_is_found_by_the_response_that_answers_it() -> None:
    watch = unread(RESPONSES)
    names = LinkNames(Scope("ann"), "conv_1")
    watch.on_left(left(replace(OPENED, names=names)))
    watch.on_response_headers(OK, {"memory": {"note_keys": "k1"}}, at=2.0)
    closed = watch.on_response_body(json.dumps(response_object([text_item("Hi")])).encode(), is_end=True, at=3.0)
    assert isinstance(closed, CloseTurn)
    assert closed.links == Links("ann", "", ("k1",), ("resp_1", "conv_1"))


@pytest.mark.parametrize("mark", [None, 5.0, "", "t9", "{}", '{"link": {"session_id": "s"}, "model": "m"}'])
def test_what_is_no_mark_leaves_the_request_to_be_read(mark: object) -> None:
    watch = unread()
    assert watch.on_left({"memory": {"turn": mark}}) is None
    assert isinstance(watch.read_request(), OpenTurn)


@pytest.mark.parametrize("model", ["m" * MARK_BYTES_MAX, "\ud800"])
def test_what_fits_no_metadata_is_no_mark(model: str) -> None:
    assert replace(OPENED, model=model).mark() == ""


def test_a_request_that_nobody_had_time_for_is_not_recorded_unless_inject_has_done_it() -> None:
    watch = unread()
    watch.drop_request()
    assert watch.on_left({}) is None
    assert watch.read_request() is None
    assert watch.is_idle
