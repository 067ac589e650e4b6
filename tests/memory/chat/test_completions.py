"""What is read out of a chat body, and what is refused; what an edit of it changes, and nothing else."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.chat.completions import NotAChat, insert_notes, read_chat_request, strip_memory_fields
from memory.chat.json_spans import MEMBERS_MAX
from memory.chat.own_fields import MemoryContext
from memory.model import Message, Note, Placement, RequestOptions


def body(**fields: Any) -> bytes:
    text = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}], **fields})
    return text.replace("Infinity", "1e999").encode()


def chat(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({"messages": messages, **fields}).encode()


def conversation_of(sent: bytes) -> Any:
    return read_chat_request(sent).conversation


def messages_of(*messages: Any) -> tuple[Message, ...]:
    return conversation_of(chat(*messages)).messages


def test_a_plain_chat_is_read() -> None:
    request = read_chat_request(body(tools=[{"type": "function"}]))
    read = request.conversation
    assert (read.messages, read.model, read.offers_tools) == ((Message("user", "Hi"),), "m", True)
    assert (request.context, request.has_memory_fields, request.is_understood) == (None, False, True)
    for tools in ("[]", "[ \n ]", "null", '"x"', "{}"):
        assert not conversation_of(body()[:-1] + f', "tools":{tools}}}'.encode()).offers_tools


def test_text_parts_are_joined_and_other_parts_left_out() -> None:
    parts = [
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": "data:x"}},
        "two",
        {"type": "thinking", "text": "hmm"},
        {"type": "input_text", "text": "three"},
    ]
    assert messages_of({"role": "user", "content": parts}) == (Message("user", "one\ntwo\nthree"),)


def test_tool_calls_and_their_results_are_tool_traffic() -> None:
    read = messages_of(
        {"role": "user", "content": "What is the weather?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "rain", "tool_call_id": "1"},
        {"role": "assistant", "function_call": {"name": "f"}},
        {"role": "function", "content": "sun"},
        {"role": "assistant", "content": "It rains.", "tool_calls": [], "function_call": None},
    )
    assert [message.is_tool_traffic for message in read] == [False, True, True, True, True, False]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "not_json"),
        (b"hello", "not_json"),
        (b'{"a":1} x', "not_json"),
        (b'{"a":1,}', "not_json"),
        (b'{"a":NaNs}', "not_json"),
        (b'{"a":NaN', "not_json"),
        (b'{"a":01}', "not_json"),
        (b'{"a":"\\x"}', "not_json"),
        (b'{"a":"\\ud800', "not_json"),
        (b'\xef\xbb\xbf\xef\xbb\xbf{"a":1}', "not_json"),
        (b'{"a":1}\xef\xbb\xbf', "not_json"),
        ('{"a":1}'.encode("utf-16"), "not_utf8"),
        (b'{"a":"\xff"}', "not_utf8"),
        (b'{"a":"\xed\xa0\x80"}', "not_utf8"),
        (b"[1]", "not_an_object"),
        (b'"memory_context"', "not_an_object"),
        (b"null", "not_an_object"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too_deep"),
        (b"{" + b'"a":1,' * MEMBERS_MAX + b'"a":1}', "too_many_members"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_is_not_one_json_object_is_not_a_chat(sent: bytes, reason: str) -> None:
    for refused in (read_chat_request, strip_memory_fields):
        with pytest.raises(NotAChat) as caught:
            refused(sent)
        assert caught.value.reason == reason


def test_memory_context_is_read_as_sent() -> None:
    sent = {"user_id": " ann ", "project_id": "p", "session_id": "s", "agent_id": None, "unknown": [1]}
    request = read_chat_request(body(memory_context=sent))
    assert request.context == MemoryContext(user_id=" ann ", project_id="p", session_id="s")
    assert (request.has_memory_fields, request.is_understood) == (True, True)


@pytest.mark.parametrize("number", [7, 0, -7, 10**30])
def test_a_number_is_the_id_of_its_digits(number: int) -> None:
    request = read_chat_request(body(memory_context={"user_id": number}, metadata={"user_id": number}))
    assert (request.context, request.named_user) == (MemoryContext(str(number)), str(number))
    assert request.options.enabled


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_python_takes_for_a_number_is_stripped_and_stays_in_the_body(word: str) -> None:
    said = f'"messages":[{{"role":"user","content":"NaN \\" Infinity","top_p":{word}}}],"temperature":{word}'.encode()
    request = read_chat_request(b'{"memory_context":{"user_id":"ann"},' + said + b"}")
    noted = said.replace(b"[", b'[{"role":"system","content":"N"},', 1)
    assert insert_notes(request, [Note("N", 0)]) == b"{" + noted + b"}"
    assert request.conversation.messages == (Message("user", 'NaN " Infinity'),)
    ours = read_chat_request(b'{"memory_config":{"token_budget":%s},%s}' % (word.encode(), said))
    assert (ours.is_understood, ours.options.enabled) == (False, False), "no number for us"
    assert insert_notes(ours, ()) == b"{" + said + b"}"


def test_memory_config_is_read() -> None:
    sent = {
        "enabled": False,
        "auto_store": False,
        "memory_types": ["semantic", "episodic"],
        "retrieval_limit": 200,
        "similarity_threshold": 1,
        "token_budget": 2000,
        "placement": "before_last_user",
    }
    options = RequestOptions(False, False, ("semantic", "episodic"), 200, 1.0, 2000, Placement.BEFORE_LAST_USER)
    assert read_chat_request(body(memory_config=sent)).options == options


@pytest.mark.parametrize("field", ["memory_context", "memory_config"])
def test_null_means_not_given(field: str) -> None:
    request = read_chat_request(body(**{field: None}))
    assert (request.context, request.options) == (None, RequestOptions())
    assert (request.has_memory_fields, request.is_understood) == (True, True)


NO_CONFIG: dict[str, list[Any]] = {
    "enabled": ["no", 0],
    "auto_store": ["false"],
    "retrieval_limit": [0, 201, True, 5.5],
    "similarity_threshold": [1.01, "0.5", math.inf],
    "token_budget": [2001, 10**30],
    "placement": ["top", ["off"]],
    "memory_types": ["semantic", ["semantic", "dream"], [{}]],
    "enable": [False],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_context", "ann"),
        ("memory_context", ["ann"]),
        *(("memory_context", {"user_id": user}) for user in (7.5, True, "ann\ud800")),
        ("memory_context", {"user_id": "ann", "project_id": ["p"]}),
        ("memory_config", True),
        ("memory_config", {"enabled": True, "autostore": False}),
        *(("memory_config", {name: value}) for name, values in NO_CONFIG.items() for value in values),
    ],
)
def test_a_field_of_ours_that_makes_no_sense_switches_memory_off_both_ways(field: str, value: object) -> None:
    request = read_chat_request(body(**{"memory_context": {"user_id": "ann"}, field: value}))
    assert not request.is_understood
    assert request.context == (None if field == "memory_context" else MemoryContext("ann"))
    assert (request.options.enabled, request.options.auto_store) == (False, False)
    assert request.conversation is not None
    assert json.loads(strip_memory_fields(request.body)) == json.loads(body())


def test_of_a_repeated_field_the_last_one_counts_as_it_does_for_every_server() -> None:
    kept = b'"messages":5,"model":"a","messages":[{"role":"user","content":"Hi"}],'
    sent = b'{"memory_context":{"user_id":"ann"},%s"memory\\u005fcontext":{"user_id":"bob"},"model":"b"}' % kept
    request = read_chat_request(sent)
    assert (request.context, request.conversation.model) == (MemoryContext("bob"), "b")
    assert strip_memory_fields(sent) == b'{%s"model":"b"}' % kept


def test_halves_of_surrogate_pairs_are_replaced_in_the_text_and_in_notes_only() -> None:
    sent = (
        rb'{"messages":[{"role":"user","content":"\\ud800 \ud83d\ude00 \ud800\uDFFF \udc00\ud83d\ud83d\ude00 \uD800"}]}'
    )
    request = read_chat_request(sent)
    assert request.conversation.last_user_text() == "\\ud800 \U0001f600 \U000103ff \ufffd\ufffd\U0001f600 \ufffd"
    assert request.body is strip_memory_fields(sent) is sent
    assert json.loads(edited(sent, Note("a\ud800b")))["messages"][0]["content"] == "a?b"


def test_the_messages_can_be_had_exactly_as_the_client_sent_them() -> None:
    one, two = rb'{"role":"user","content":"a\u00e9\ud800"}', b'{ "content":"b" , "role":"user" }'
    for sent, messages in (
        (b'{"messages": [ %s ,%s ],"x":1}' % (one, two), [one, two]),
        (b'{"messages":[%s],"messages":[%s]}' % (one, two), [two]),
        (b'\xef\xbb\xbf{"messages":[%s]}' % one, [one]),
    ):
        request = read_chat_request(sent)
        assert [bytes(message) for message in request.shape.message_bytes(request)] == messages


OURS = {"memory_context", "memory_config"}
NOTE = Note('Ann\'s "budget" is\n$10,000 \\ é')


def edited(body: bytes, *notes: Note) -> bytes:
    return insert_notes(read_chat_request(body), notes)


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        (b'{"memory_context":{"user_id":"a"}}', b"{}"),
        (b'{ "memory_context" : {} , "memory_config" : null }', b"{  }"),
        (b'{"memory_context":{},"a":1}', b'{"a":1}'),
        (b'{"a":1,"memory_context":{}}', b'{"a":1}'),
        (b'{"a": 1, "memory_context": {}, "b": 2}', b'{"a": 1, "b": 2}'),
        (b'{\n  "a": 1,\n  "memory_context": {},\n  "memory_config": {}\n}\n', b'{\n  "a": 1\n}\n'),
        (b'{\n  "memory_context": {},\n  "a": 1\n}', b'{\n  "a": 1\n}'),
        (b'{"memory_config":{},"a":1,"memory_context":{},"b":2,"memory_context":5}', b'{"a":1,"b":2}'),
        (b'{"a":1,"memory\\u005fcontext":{},"\\u006Demory_config":{"x":"}"}}', b'{"a":1}'),
        (b'{"a":{"memory_context":1},"Memory_context":2}', b'{"a":{"memory_context":1},"Memory_context":2}'),
        (b'{"memory_context":"\\ud800","a":"\\ud800"}', b'{"a":"\\ud800"}'),
        (b'\xef\xbb\xbf{"memory_context":{},"a":1}', b'\xef\xbb\xbf{"a":1}'),
        (b'\xef\xbb\xbf\n{"a":1.0}', b'\xef\xbb\xbf\n{"a":1.0}'),
    ],
)
def test_our_fields_leave_with_one_comma_and_the_space_beside_it(sent: bytes, left: bytes) -> None:
    assert strip_memory_fields(sent) == left
    assert edited(sent) == left


def test_a_byte_order_mark_stays_and_hides_nothing_from_us() -> None:
    """Parsers of most servers let it pass, so such a body is answered like any other."""
    sent = b'\xef\xbb\xbf{"memory_context":{"user_id":"ann"},"messages":[{"role":"user","content":"Hi"}]}'
    assert read_chat_request(sent).context == MemoryContext("ann")
    left = b'\xef\xbb\xbf{"messages":[{"role":"system","content":"N"},{"role":"user","content":"Hi"}]}'
    assert edited(sent, Note("N")) == left


def test_the_client_s_spelling_survives() -> None:
    before = rb'{ "temperature" : 1.0e+00, "seed":123456789012345678901234567, "x":"\ud800\u00e9\/", "a":1,"a":2.50, '
    after = rb'"messages" : [ {"content":"Hi","role":"user"} ]}'
    inserted = edited(before + rb'"memory_context" : { "user_id" : "ann" } ,' + after, Note("N"))
    assert inserted == before + after.replace(b"[ {", b'[ {"role":"system","content":"N"},{')


BRIEF = {"type": "text", "text": "Be brief."}


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": "Be\n\ud83d\ude00 \ud800 brief."}, f"Be\n\ud83d\ude00 \ud800 brief.\n\n{NOTE.text}"),
        ({"content": ""}, NOTE.text),
        ({"content": None}, NOTE.text),
        ({}, NOTE.text),
        ({"content": []}, [{"type": "text", "text": NOTE.text}]),
        ({"content": [BRIEF], "name": "x"}, [BRIEF, {"type": "text", "text": NOTE.text}]),
    ],
)
def test_a_note_is_merged_after_the_client_s_own_system_text(role: str, message: dict[str, Any], content: Any) -> None:
    body = chat({"role": role, **message}, {"role": "user", "content": "Hi"})
    want = json.loads(body)
    want["messages"][0]["content"] = json.loads(json.dumps(content))
    assert json.loads(edited(body, NOTE)) == want


def test_of_what_is_repeated_the_one_that_counts_gets_the_note() -> None:
    body = b'{"messages":[{"content":"a","role":"system","content" : "b" }]}'
    assert edited(body, Note("N")) == b'{"messages":[{"content":"a","role":"system","content" : "b\\n\\nN" }]}'
    messages = b'{"role":"user","content":"Hi"}]}'
    noted = b'{"messages":[1],"messages":[{"role":"system","content":"N"},' + messages
    assert edited(b'{"messages":[1],"messages":[' + messages, Note("N")) == noted


def test_notes_stand_right_before_their_messages() -> None:
    said = (("system", "S"), ("user", "1"), ("assistant", "2"), ("user", "3"))
    body = chat(*({"role": role, "content": content} for role, content in said))
    got = json.loads(edited(body, Note("late", before=3), Note("early", before=1), Note("a"), Note("b")))["messages"]
    noted = [("system", "S\n\na\n\nb"), ("system", "early"), *said[1:3], ("system", "late"), said[3]]
    assert [(message["role"], message["content"]) for message in got] == noted
    got = json.loads(edited(chat({"role": "user", "content": "1"}), Note("own", before=0), Note("merged")))["messages"]
    assert [message["content"] for message in got] == ["merged", "own", "1"]


names = st.text() | st.sampled_from(sorted(OURS))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=8)


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
@example(b'{"a":"\\ud800\\')
@example(b'{"memory_context"}')
def test_anything_is_either_refused_or_stripped(body: bytes) -> None:
    try:
        stripped = strip_memory_fields(body)
    except NotAChat:
        return
    assert not OURS & json.loads(stripped).keys()
    assert json.loads(stripped) == {key: value for key, value in json.loads(body).items() if key not in OURS}
