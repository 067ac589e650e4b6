"""What every API that gets memory has to keep, both ways: requests read, stripped and edited, replies read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from api_shapes import ASKED_COMPLETIONS, ASKED_MESSAGES, ASKED_RESPONSES, AskedShape
from message_objects import message_events, message_object, text_block, tool_block
from response_objects import call_item, event_stream, response_object, text_item

from extproc.apis import API_BY_PATH, Api
from extproc.reply import Reply, read_reply
from memory.chat.completions import ChatRequest, NotAChat, insert_notes, read_chat_request
from memory.chat.history import clean_cuts
from memory.chat.token_estimate import estimated_prompt
from memory.chat.tool_traffic import tool_messages
from memory.model import Message, Note, Placement, Role, Scope, TurnStatus
from memory.recall.notes.past_notes import note_keys

JSON = [("content-type", b"application/json")]
SSE = [("content-type", b"text/event-stream")]
TALK = [Message("user", "My cat is Miu."), Message("assistant", "Noted."), Message("user", "What is my cat called?")]


@dataclass(frozen=True)
class Dialect:
    """How one API says the same things."""

    asked: AskedShape
    answer: Callable[[str], bytes]
    call: Callable[[], bytes]
    stream: Callable[[str], list[bytes]]

    @property
    def api(self) -> Api:
        return API_BY_PATH[self.asked.shape.path]

    def body(self, messages: Sequence[Message]) -> dict[str, Any]:
        return self.asked.body([{"role": m.role, "content": m.content} for m in messages])


def completion(message: dict[str, Any]) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


def completion_stream(text: str) -> list[bytes]:
    deltas = [{"delta": {"content": text[at : at + 5]}} for at in range(0, len(text), 5)]
    choices = [*deltas, {"delta": {}, "finish_reason": "stop"}]
    chunks = [json.dumps({"choices": [{"index": 0, **choice}]}) for choice in choices]
    return [f"data: {chunk}\n\n".encode() for chunk in [*chunks, "[DONE]"]]


DIALECTS = (
    Dialect(
        ASKED_COMPLETIONS,
        lambda text: completion({"role": "assistant", "content": text}),
        lambda: completion({"role": "assistant", "tool_calls": [{"id": "c"}]}),
        completion_stream,
    ),
    Dialect(
        ASKED_RESPONSES,
        lambda text: json.dumps(response_object([text_item(text)])).encode(),
        lambda: json.dumps(response_object([call_item("f")])).encode(),
        lambda text: event_stream(response_object([text_item(text)])),
    ),
    Dialect(
        ASKED_MESSAGES,
        lambda text: json.dumps(message_object([text_block(text)])).encode(),
        lambda: json.dumps(message_object([tool_block("f")])).encode(),
        lambda text: message_events(message_object([text_block(text)])),
    ),
)


@pytest.fixture(params=DIALECTS, ids=lambda one: one.asked.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


def sent(dialect: Dialect, messages: Sequence[Message] = TALK) -> Any:
    return read_chat_request(json.dumps(dialect.body(messages)).encode(), dialect.api.requests)


def test_every_api_has_its_dialect_here() -> None:
    assert {one.asked.shape.path for one in DIALECTS} == set(API_BY_PATH)


def test_our_fields_go_and_every_other_byte_stays(dialect: Dialect) -> None:
    plain = json.dumps({**dialect.body(TALK), "metadata": {"user_id": "ann"}, "user": "bob", "x": [1.0]}).encode()
    ours = b'{"memory_context":{"user_id":"ann"},"memory_config":{"token_budget":9},"auto_store":false,' + plain[1:]
    request = read_chat_request(ours, dialect.api.requests)
    assert insert_notes(request, ()) == plain
    assert (request.named_user, request.options.auto_store, request.options.token_budget) == ("ann", False, 9)
    untouched = read_chat_request(plain, dialect.api.requests)
    assert insert_notes(untouched, ()) is plain


@pytest.mark.parametrize("placed", [Note("a note", 0), Note("a note", 2), Note("a note")])
def test_a_note_goes_in_and_the_client_s_words_stay(dialect: Dialect, placed: Note) -> None:
    request = sent(dialect)
    again = read_chat_request(insert_notes(request, [placed]), dialect.api.requests).conversation
    assert again is not None
    said = "\n".join(message.content for message in again.messages)
    assert said.count("a note") == 1
    assert [word for word in said.split("\n") if word in {m.content for m in TALK}] == [m.content for m in TALK]
    assert said.index("a note") < said.index(TALK[placed.before or 0].content)


def test_each_message_of_a_user_has_a_key_of_its_own_that_a_longer_conversation_keeps(dialect: Dialect) -> None:
    request = sent(dialect)
    assert (request.conversation.messages, request.conversation.model) == (tuple(TALK), "m")
    assert request.conversation.new_user_messages() == (TALK[2],)
    assert len(request.shape.message_bytes(request)) == len(TALK)
    keys = note_keys(Scope("ann"), request)
    assert list(keys) == [0, 2]
    assert note_keys(Scope("ann"), sent(dialect, TALK[:1]))[0] == keys[0]
    assert len(set(keys.values()) | set(note_keys(Scope("bob"), request).values())) == 4


def test_what_a_template_may_refuse_is_named(dialect: Dialect) -> None:
    shape = dialect.api.requests
    request = sent(dialect)
    assert shape.refusable(request, []) is None
    assert shape.refusable(request, [Note("N")]) is Placement.SYSTEM
    usual = Placement.BEFORE_LAST_USER if shape.is_bound_by_templates else None
    assert shape.refusable(request, [Note("N", 2)]) is usual
    own = sent(dialect, [Message(Role.SYSTEM, "Be kind."), *TALK])
    assert shape.refusable(own, [Note("N")]) is None


IMAGE = {"type": "image_url", "image_url": {"url": "data:x"}}
FUNCTION = {"id": "t1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
BESIDE = {"metadata": {"user_id": "ann"}, "user": "bob", "stream": True, "memory_context": {"user_id": "ann"}}
WHOLE: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [IMAGE, {"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [FUNCTION]},
            {"role": "tool", "tool_call_id": "t1", "content": "x"},
            {"role": "user", "content": "And Leeds?"},
        ],
        "tools": [{"type": "function", "function": {"name": "read"}}],
        **BESIDE,
    },
    "/v1/responses": {
        "instructions": "Be kind.",
        "previous_response_id": "resp_1",
        "input": [
            {"role": "user", "content": [{"type": "input_image"}, {"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "secret"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "t1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t1", "output": "x"},
            {"role": "user", "content": "And Leeds?"},
        ],
        **BESIDE,
    },
    "/v1/messages": {
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": {}}, {"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, tool_block("read")]},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "x"}]}]},
            {"role": "user", "content": "And Leeds?"},
        ],
        **BESIDE,
    },
}  # fmt: skip
ODD: list[Any] = [None, 7, -1.5, "", "x", [], {}, [[]], [None], {"type": "new"}, [{"type": "text"}], True, "\ud83d"]
EDITED = ("messages", "system", "input", "instructions")


def mutated(value: Any, chance: random.Random) -> Any:
    """The same with one place of it, at whatever depth, replaced, removed or doubled."""
    if not value or not isinstance(value, dict | list) or chance.random() < 0.1:
        return chance.choice(ODD)
    at = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    match chance.randrange(6):
        case 0:
            del copy[at]
        case 1 if isinstance(copy, list):
            copy.insert(at, copy[at])
        case 2 if isinstance(copy, dict):
            copy[chance.choice(("text", "type", "content", "id", "\ud83d"))] = chance.choice(ODD)
        case _:
            copy[at] = mutated(copy[at], chance)
    return copy


def without(body: Any, *names: str) -> Any:
    return {name: value for name, value in body.items() if name not in names} if isinstance(body, dict) else body


def lines_of(request: ChatRequest) -> list[str]:
    assert request.conversation is not None
    return [line for message in request.conversation.messages for line in message.content.split("\n") if line]


@pytest.mark.parametrize("indent", [None, 1])
def test_of_300_mutated_bodies_each_passes_and_a_note_changes_one_place(dialect: Dialect, indent: int | None) -> None:
    chance, noted, shape = random.Random(35), 0, dialect.api.requests
    for number in range(300):
        body = mutated(mutated(WHOLE[shape.path], chance), chance)
        try:
            request = read_chat_request(json.dumps(body, indent=indent).encode(), shape)
        except NotAChat:
            assert not isinstance(body, dict), "every object is stripped"
            continue
        assert json.loads(insert_notes(request, ())) == without(body, "memory_context"), number
        if request.conversation is None:
            continue
        assert len(request.shape.message_bytes(request)) == len(request.conversation.messages)
        note_keys(Scope("ann"), request), tool_messages(request), clean_cuts(request), estimated_prompt(request)
        places = [i for i, m in enumerate(request.conversation.messages) if m.role == Role.USER]
        for note in [Note("NOTE"), *(Note("NOTE", place) for place in places)]:
            left = insert_notes(request, [note])
            assert left.count(b"NOTE") == 1
            again = lines_of(read_chat_request(left, shape))
            assert [line for line in again if line != "NOTE"] == lines_of(request), number
            assert without(json.loads(left), *EDITED) == without(body, "memory_context", *EDITED)
            noted += 1
    assert noted > 200


def read_by(dialect: Dialect, headers: Any, body: bytes, status: int = 200) -> Reply:
    return read_reply(status, headers, body, dialect.api.replies)


def test_an_answer_is_one_text_in_one_piece_and_streamed(dialect: Dialect) -> None:
    text = "Sie heißt Miu 🐈\nund sonst nichts"
    for reply in (
        read_by(dialect, JSON, dialect.answer(text)),
        read_by(dialect, SSE, b"".join(dialect.stream(text))),
        read_by(dialect, [], b"".join(dialect.stream(text))),
    ):
        assert (reply.status, reply.text) == (TurnStatus.CLOSED, text)
    assert read_by(dialect, SSE, b"".join(dialect.stream(text))).is_done
    call = read_by(dialect, JSON, dialect.call())  # is none
    assert (call.status, call.text, call.has_tool_calls) == (TurnStatus.CLOSED, "", True)


def test_an_error_is_a_failure_and_what_breaks_off_is_aborted(dialect: Dialect) -> None:
    assert read_by(dialect, JSON, dialect.answer("x"), status=500).status is TurnStatus.FAILED
    assert read_by(dialect, JSON, b'{"error":{"message":"x"}}').status is TurnStatus.FAILED
    cut_off = read_by(dialect, SSE, b"".join(dialect.stream("a long answer"))[:-80].rpartition(b"\n\n")[0])
    assert (cut_off.status, cut_off.text) == (TurnStatus.ABORTED, "")


@pytest.mark.parametrize("body", [b"", b"null", b"[1]", b"{", b"data: {", b"\xff", b'{"choices":1,"output":1}'])
def test_nonsense_is_no_answer_and_no_error(dialect: Dialect, body: bytes) -> None:
    for headers in (JSON, SSE):
        assert read_by(dialect, headers, body).text == ""
