"""What a reply says, in all the shapes that servers give it, event streams among them."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extproc import reply as bounds
from extproc.identity import Headers
from extproc.reply import Reply, ReplyBuffer, events, read_reply, without_reasoning
from memory.model import TurnStatus

JSON: Headers = [("content-type", b"application/json")]
STREAM: Headers = [("content-type", b"text/event-stream; charset=utf-8")]


def whole(*messages: dict[str, Any], **fields: Any) -> bytes:
    choices = [{"index": i, "message": message, "finish_reason": "stop"} for i, message in enumerate(messages)]
    return json.dumps({"object": "chat.completion", "model": "m", "choices": choices, **fields}).encode()


def chunk(delta: dict[str, Any], *, index: int = 0, finish_reason: str | None = None) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"model": "m", "choices": [choice]}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
STOP = chunk({}, finish_reason="stop")


@pytest.mark.parametrize("headers", [JSON, STREAM, [], [("content-type", b"text/plain")]])
def test_a_wrong_type_does_not_hide_an_answer(headers: Headers) -> None:
    assert read_reply(200, headers, b"\n " + whole({"content": "Hello"})).text == "Hello"
    assert read_reply(200, headers, chunk({"content": "Hello"}) + STOP + DONE).text == "Hello"


@pytest.mark.parametrize(
    ("ending", "is_whole"),
    [
        *((ending, True) for ending in (STOP, DONE, STOP + DONE, (STOP + DONE).rstrip())),
        *((ending, False) for ending in (b"", b'data: {"choi', chunk({"content": "lo"}))),
    ],
)
def test_a_stream_is_whole_with_a_finish_reason_or_done_and_else_aborted(ending: bytes, *, is_whole: bool) -> None:
    reply = read_reply(200, STREAM, chunk({"content": "Hello"}) + ending)
    expected = (TurnStatus.CLOSED, "Hello") if is_whole else (TurnStatus.ABORTED, "")
    assert (reply.status, reply.text) == expected


@pytest.mark.parametrize("status", [0, 199, 302, 400, 429, 503])
def test_anything_but_success_failed(status: int) -> None:
    reply = read_reply(status, JSON, whole({"content": "Hello"}))
    assert (reply.status, reply.text) == (TurnStatus.FAILED, "")


@pytest.mark.parametrize(
    "event", [b'{"error":{"message":"out of memory","code":500}}', b'{"object":"error","message":"no","code":400}']
)
def test_an_error_inside_a_success_failed(event: bytes) -> None:
    assert read_reply(200, JSON, event).status is TurnStatus.FAILED
    reply = read_reply(200, STREAM, chunk({"content": "Hel"}) + b"data: " + event + b"\n\n" + DONE)
    assert (reply.status, reply.text) == (TurnStatus.FAILED, "")


def test_tool_calls_are_no_answer_even_with_words_beside_them() -> None:
    call = [{"index": 0, "function": {"name": "f", "arguments": ""}}]
    reply = read_reply(200, JSON, whole({"content": "Let me look.", "tool_calls": call}))
    assert (reply.status, reply.text, reply.has_tool_calls) == (TurnStatus.CLOSED, "", True)
    stream = chunk({"content": "Let me look."}) + chunk({"tool_calls": call}) + chunk({}, finish_reason="tool_calls")
    reply = read_reply(200, STREAM, stream + DONE)
    assert (reply.text, reply.has_tool_calls) == ("", True)


PARTS = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
BROKEN = b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d\xffb"}}]}\n\n'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (whole({"content": "Hello", "tool_calls": [], "function_call": None}, error=None), "Hello"),
        (whole({"content": PARTS}), "a\nb"),
        (whole({"content": None}, {"content": "B"}, {"content": "C"}), "B"),
        (chunk({"content": "B"}, index=1) + chunk({"content": "A"}) + chunk({"content": "b"}, index=1) + STOP, "A"),
        (whole({"content": "Hello", "reasoning_content": "Hmm"}), "Hello"),
        (chunk({"reasoning_content": "Hmm"}) + chunk({"content": "Hi"}) + STOP, "Hi"),
        (chunk({"content": "<thi"}) + chunk({"content": "nk>Hm</think>\n\nHi"}) + STOP, "Hi"),
        (b"data: ping\n\n" + BROKEN + b'data: {"choices":5}\n\n' + DONE, "a\ufffd\ufffdb"),
    ],
    ids=[
        *("no calls and no error", "parts", "the first choice with text", "the first choice of a stream"),
        *("reasoning", "reasoning in a stream", "reasoning that is cut", "broken characters and events"),
    ],
)
def test_the_text_is_the_answer_and_no_more(body: bytes, text: str) -> None:
    assert read_reply(200, [], body).text == text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Hello", "Hello"),
        ("\n<think>\na\nb</think>\n\nHello", "Hello"),
        ("<think></think>Hello <think>x</think>", "Hello <think>x</think>"),
        ("<think>never ends", ""),
        ("Say <think> first.</think>", "Say <think> first.</think>"),
    ],
)
def test_only_a_think_block_at_the_beginning_is_reasoning(text: str, answer: str) -> None:
    assert without_reasoning(text) == answer


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"{", b'{"choices":5}', b'{"choices":null}', b'{"object":"list"}', b'{"a":' + b"[" * 100_000],
    ids=lambda body: str(body)[:20],
)
def test_what_we_cannot_read_closes_the_turn_without_an_answer(body: bytes) -> None:
    assert read_reply(200, JSON, body) == Reply(TurnStatus.CLOSED)


def _raw_deflate(body: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(body) + deflater.flush()


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        (b"gzip", gzip.compress),
        (b"X-GZIP", gzip.compress),
        (b"gzip", lambda body: gzip.compress(body[:20]) + gzip.compress(body[20:])),
        (b"deflate", zlib.compress),
        (b"deflate", _raw_deflate),
        (b"identity", bytes),
    ],
)
def test_packed_replies_are_unpacked(coding: bytes, packed: Any) -> None:
    headers: Headers = [*STREAM, ("content-encoding", coding)]
    body = packed(chunk({"content": "Hello"}) + STOP + DONE)
    assert read_reply(200, headers, body).text == "Hello"
    assert read_reply(200, headers, body[: len(body) // 3]).status is not TurnStatus.FAILED


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (b"br", b"\x0b\x02\x80"),
        (b"zstd", b"x"),
        (b"gzip, gzip", b"x"),
        (b"gzip", b"not gzip"),
        (b"gzip", gzip.compress(b"", mtime=0) * 50_000),
        (b"gzip", gzip.compress(bytes(bounds.INFLATED_BYTES_MAX + 1), mtime=0)),
    ],
    ids=lambda value: str(value)[:20],
)
@pytest.mark.parametrize("kind", [JSON, STREAM], ids=["JSON", "stream"])
def test_a_coding_that_we_cannot_undo_closes_the_turn_unanswered(kind: Headers, coding: bytes, body: bytes) -> None:
    assert read_reply(200, [*kind, ("content-encoding", coding)], body) == Reply(TurnStatus.CLOSED)


def test_a_buffer_keeps_what_came_up_to_its_bound_and_past_it_the_beginning() -> None:
    buffer = ReplyBuffer()
    for piece in (b"a", b"", b"b" * (bounds.REPLY_BYTES_MAX - 1)):
        buffer.add(piece)
    assert not buffer.is_over_cap
    assert buffer.body() == b"a" + b"b" * (bounds.REPLY_BYTES_MAX - 1)
    buffer.add(b"c")
    assert buffer.is_over_cap
    assert buffer.body() == b"a" + b"b" * (bounds.PART_BYTES_MAX - 1)
    buffer.add(b"d" * bounds.REPLY_BYTES_MAX)
    assert buffer.body() == b"a" + b"b" * (bounds.PART_BYTES_MAX - 1)
    assert buffer.size == 2 * bounds.REPLY_BYTES_MAX + 1


@given(st.integers(200, 299), st.sampled_from(["", "gzip", "deflate", "br"]), st.binary())
def test_no_reply_raises(status: int, coding: str, body: bytes) -> None:
    assert read_reply(status, [("content-encoding", coding.encode())], body).status in TurnStatus


# The events of a stream


@pytest.mark.parametrize(
    ("body", "payloads"),
    [
        (b"", []),
        (b"\n\n\n", []),
        (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
        (b": keep-alive\n\nevent: x\nid: 1\nretry: 5\n\ndata: one\n\n", [b"one"]),
        (b": hi\ndata: one\n: hi\ndata: two\n\n", [b"one\ntwo"]),
        (b"data:one\n\ndata:  two \n\n", [b"one", b" two "]),
        (b"data\n\ndata:\n\n", [b"", b""]),
        (b"database: no\n\ndata : no\n\n data: no\n\n", []),
        (b"\xef\xbb\xbfdata: one\n\n", [b"one"]),
        (b"data: one\n\ndata: [DONE]", [b"one", b"[DONE]"]),
        (b"data: one\n\ndata: [DONE]\n", [b"one", b"[DONE]"]),
        ("data: é\u2028ü\n\n".encode(), ["é\u2028ü".encode()]),
    ],
)
def test_the_data_of_each_event_is_found(body: bytes, payloads: list[bytes]) -> None:
    assert list(events(body)) == payloads


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf8"))), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_was_sent_is_what_is_read(sent: list[str], end: str) -> None:
    body = "".join(f"data: {payload}{end}{end}" for payload in sent)
    assert list(events(body.encode())) == [payload.encode() for payload in sent]
