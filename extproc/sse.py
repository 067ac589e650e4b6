"""Splits a complete stream of server-sent events into the payloads of its events.

Parsing happens once, at the end, so that chunk boundaries do not matter. Payloads are not interpreted, including
`[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterator

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def events(body: bytes) -> Iterator[bytes]:
    """The data of every event, in order; several data lines of one event are joined by LF.

    Lines end with LF, CRLF or CR. Comments, other fields and events without data are left out. Unlike in a browser, a
    last event without a blank line counts: some servers close right after `data: [DONE]`.
    """
    data: list[bytes] = []
    for line in _lines(body.removeprefix(_BYTE_ORDER_MARK)):
        if not line:
            if data:
                yield b"\n".join(data)
                data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line == b"data":
            data.append(b"")
    if data:
        yield b"\n".join(data)


def _lines(body: bytes) -> Iterator[bytes]:
    """Lines without line ends, one at a time: a body of line ends only must not become millions of objects."""
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    start = 0
    while (end := body.find(b"\n", start)) >= 0:
        yield body[start:end]
        start = end + 1
    if start < len(body):
        yield body[start:]
