"""What a body of Anthropic's Messages API says, where a note goes, and that nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_shapes import assistant, user
from message_objects import text_block as text
from message_objects import thinking_block
from message_objects import tool_block as call

from memory.chat.completions import ChatRequest, insert_notes, read_chat_request
from memory.chat.history import clean_cuts
from memory.chat.messages import MESSAGES
from memory.chat.token_estimate import IMAGE_TOKENS, estimated_prompt
from memory.chat.tool_traffic import tool_messages
from memory.model import Message, Note, Placement, Role, Scope, ToolMessage
from memory.recall.notes.past_notes import note_keys

NOTE = Note('Ann\'s "budget" is\n$10,000 \\ é', before=0)
TEXT = NOTE.text
NOTHING: tuple[Any, ...] = ("", [], None)  # of a system prompt
CACHED = {"cache_control": {"type": "ephemeral"}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 500}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "I hate boats."}}
THINKING = thinking_block("She means Miu.")
REMINDER = text("<system-reminder>\nThe file was changed.\n</system-reminder>")


def asked(body: bytes | dict[str, Any]) -> ChatRequest:
    return read_chat_request(body if isinstance(body, bytes) else json.dumps(body).encode(), MESSAGES)


def said(*messages: dict[str, Any], **more: Any) -> tuple[Message, ...]:
    return asked({"messages": messages, **more}).conversation.messages


def edited(body: dict[str, Any], *notes: Note) -> Any:
    return json.loads(insert_notes(asked(body), notes))


def result(content: Any = "42", call_id: str = "toolu_1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


READ: list[tuple[dict[str, Any], Message]] = [
    (user("Hi"), Message("user", "Hi")),
    (user(""), Message("user", "")),
    (user([]), Message("user", "")),
    (user([text("Will it") | CACHED, text("rain?")]), Message("user", "Will it\nrain?")),
    (user([IMAGE, DOCUMENT, text("What?")]), Message("user", "What?")),
    (user([IMAGE]), Message("user", "")),
    (user([REMINDER, text("My cat is Miu.")]), Message("user", "My cat is Miu.")),
    (user(REMINDER["text"]), Message("user", "")),
    (user([text("Why <system-reminder>?")]), Message("user", "Why <system-reminder>?")),
    (assistant([THINKING, text("Hello"), {"type": "redacted_thinking", "data": "x"}]), Message("assistant", "Hello")),
    (assistant([text("I look."), call("read")]), Message("assistant", "I look.", is_tool_traffic=True)),
    (assistant([{"type": "server_tool_use", "id": "s"}, text("Dry.")]), Message("assistant", "Dry.")),
    (user([result(), REMINDER]), Message("tool", "", is_tool_traffic=True)),
    (user([result([IMAGE]), text("And Leeds?")]), Message("user", "And Leeds?")),
    (user([{"type": "from_the_future", "text": {"deep": []}}, text("Hi")]), Message("user", "Hi")),
    (user([{"type": 5}, {}, text("Hi")]), Message("user", "Hi")),
    ({"role": "system", "content": "Be brief."}, Message("system", "Be brief.")),
    ({"role": "ctx", "content": "The date changed."}, Message("ctx", "The date changed.")),
]


def test_a_conversation_is_read_message_by_message() -> None:
    assert said(*(message for message, _ in READ)) == tuple(message for _, message in READ)


@pytest.mark.parametrize(
    ("system", "messages"),
    [
        ("Be kind.", [Message(Role.SYSTEM, "Be kind.")]),
        ([text("Be kind.") | CACHED, text("Be brief.")], [Message(Role.SYSTEM, "Be kind.\nBe brief.")]),
        ([text("x-anthropic-billing-header: cch=1"), text("Be kind.")], [Message(Role.SYSTEM, "Be kind.")]),
        *((nothing, []) for nothing in NOTHING),
    ],
)
def test_the_system_prompt_is_the_first_message(system: Any, messages: list[Message]) -> None:
    assert said(user("Hi"), system=system) == (*messages, Message("user", "Hi"))


def test_a_string_stays_a_string_and_every_other_byte_as_it_was() -> None:
    body = b'{ "max_tokens":9 , "messages":[ {"content" : "Hi\\u00e9 \\ud83d","role":"user"}] ,"memory_context":{} }'
    left = b'{ "max_tokens":9 , "messages":[ {"content" : "N\\n\\nHi\\u00e9 \\ud83d","role":"user"}] }'
    assert insert_notes(asked(body), [Note("N", 0)]) == left


@pytest.mark.parametrize(
    ("content", "with_note"),
    [
        ("Hi", f"{TEXT}\n\nHi"),
        ("", f"{TEXT}\n\n"),
        ([], [text(TEXT)]),
        ([text("Hi") | CACHED], [text(f"{TEXT}\n\nHi") | CACHED]),
        ([IMAGE, text("Hi")], [text(TEXT), IMAGE, text("Hi")]),
        ([REMINDER, text("Hi") | CACHED], [REMINDER, text(f"{TEXT}\n\nHi") | CACHED]),
        ([result(**CACHED), text("Hi")], [result(**CACHED), text(f"{TEXT}\n\nHi")]),
        ([result(), DOCUMENT], [result(), text(TEXT), DOCUMENT]),
        ([REMINDER], [REMINDER, text(TEXT)]),
    ],
)
def test_a_note_stands_at_the_head_of_the_user_s_own_text(content: Any, with_note: Any) -> None:
    assert edited({"messages": [user(content)]}, NOTE) == {"messages": [user(with_note)]}


@pytest.mark.parametrize(
    ("system", "with_note", "is_made"),
    [
        ({}, TEXT, True),
        *(({"system": nothing}, TEXT, True) for nothing in NOTHING),
        ({"system": "Be kind."}, f"Be kind.\n\n{TEXT}", False),
        ({"system": [text("Be kind.") | CACHED]}, [text("Be kind.") | CACHED, text(f"\n\n{TEXT}")], False),
    ],
)
def test_placement_system_is_the_end_of_the_system_prompt(system: Any, with_note: Any, is_made: bool) -> None:
    body, note = {**system, "messages": [user("Hi")]}, Note(TEXT)
    assert edited(body, note) == {"system": with_note, "messages": [user("Hi")]}
    assert MESSAGES.refusable(asked(body), [note]) == (Placement.SYSTEM if is_made else None)
    assert edited({"messages": [user("Hi")], **system}, note) == {"system": with_note, "messages": [user("Hi")]}


def keys(*messages: dict[str, Any], **more: Any) -> list[str]:
    return list(note_keys(Scope("ann"), asked({"messages": messages, **more})).values())


def test_what_clients_move_or_drop_between_requests_changes_no_key() -> None:
    question, answer = user([REMINDER, text("Hi") | CACHED]), assistant([THINKING, text("Hello"), call("read")])
    billed = [text("x-anthropic-billing-header: cch=1"), text("Be kind.") | CACHED]
    first, second = keys(question, answer, user([result(**CACHED), text("And now?")]), system=billed)
    question, answer = user([REMINDER, text("Hi")]), assistant([text("Hello"), call("read")])
    later = question, answer, user([result(), text("And now?") | CACHED]), assistant("Yes."), user("Fine.")
    billed = [text("x-anthropic-billing-header: cch=2"), text("Be kind.")]
    assert keys(*later, system=billed)[:2] == [first, second]
    assert keys(user([text("Hi")]), system="Be kind.") == keys(user("Hi"), system="Be kind.")


def test_other_words_calls_and_results_change_the_keys_after_them() -> None:
    def last(*, word: str = "Hi", path: str = "a", output: str = "42", **more: Any) -> str:
        loop = assistant([call("read", {"path": path})]), user([result(output)])
        return keys(user(word), *loop, user("And now?"), **more)[-1]

    others = {last(word="Ho"), last(path="b"), last(output="43"), last(system="Be kind.")}
    assert len(others | {last()}) == 5


def test_calls_and_their_results_go_into_the_record_and_a_history_is_not_cut_between_them() -> None:
    history = [user("Hi"), assistant("Hello"), user("Will it rain?")]
    calls = assistant([THINKING, text("I look."), call("read", {"path": "a"}, "t1"), call("list", call_id="t2")])
    results = user([result("42", "t1"), result([text("x"), text("y")], "t2", is_error=False), REMINDER])
    body = {"system": "Be kind.", "messages": [*history, calls, results]}
    assert tool_messages(asked(body)) == (
        ToolMessage("read", '{"path": "a"}', "t1"),
        ToolMessage("list", "{}", "t2"),
        ToolMessage("read", "42", "t1", is_result=True),
        ToolMessage("list", "x\ny", "t2", is_result=True),
    )
    assert tool_messages(asked({"messages": history})) == ()
    interrupted = user([result("42", "t1"), result("", "t2"), text("And Leeds?")])
    later = {"messages": [*history, calls, interrupted, assistant("No."), user("Thanks.")]}
    assert clean_cuts(asked(later)) == {2, 6}
    assert clean_cuts(asked({"messages": [user([IMAGE]), assistant("Nice."), user("Hi")]})) == frozenset()


def test_results_count_and_images_have_one_price() -> None:
    def tokens(*content: dict[str, Any]) -> float:
        return estimated_prompt(asked({"messages": [user([*content, text("And Leeds?")])]}))

    assert tokens(result("word " * 1_000)) > 1_000
    assert IMAGE_TOKENS < tokens(IMAGE) < IMAGE_TOKENS + 100
    assert IMAGE_TOKENS < tokens(result([IMAGE])) < IMAGE_TOKENS + 200


@pytest.mark.parametrize(
    ("named", "user"),
    [
        ("ann", "ann"),
        ("user_0a1b_account__session_7d0e2f61-4b5c", "0a1b"),
        ("user_0a1b_account_9f-1_session_7d0e2f61-4b5c", "9f-1"),
        ('{"device_id":"0a1b","account_uuid":"","session_id":"7d0e"}', "0a1b"),
        ('{"device_id":"0a1b","account_uuid":"9f-1","session_id":"7d0e"}', "9f-1"),
        ('{"device_id":"0a1b"}', '{"device_id":"0a1b"}'),
        ("{", "{"),
    ],
)
def test_the_user_that_claude_code_names_is_the_same_in_each_session(named: str, user: str) -> None:
    assert asked({"messages": [], "metadata": {"user_id": named}}).named_user == user
