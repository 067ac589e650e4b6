"""Event streams as servers really send them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extproc.sse import events


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_ends_a_line(end: str) -> None:
    body = f"data: one{end}{end}data: two{end}{end}".encode()
    assert list(events(body)) == [b"one", b"two"]


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


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"))), st.sampled_from(["\n", "\r\n", "\r"])
)
def test_what_was_sent_is_what_is_read(sent: list[str], end: str) -> None:
    body = "".join(f"data: {payload}{end}{end}" for payload in sent)
    assert list(events(body.encode())) == [payload.encode() for payload in sent]


@given(st.binary())
def test_any_bytes_are_read_without_an_error(body: bytes) -> None:
    assert all(isinstance(payload, bytes) for payload in events(body))
