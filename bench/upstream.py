"""An upstream of negligible cost, in its own process: JSON for each API, or SSE chunks stamped as they are sent.

`python bench/upstream.py PORT`. A body that holds `"stream":true` gets CHUNKS events, CHUNK_SECONDS apart; each carries
the moment it was written (`sent`, nanoseconds of the wall clock).
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time

import uvloop

CHUNKS = 200
CHUNK_SECONDS = 0.01  # a model that writes 100 tokens a second

_MESSAGE = b'{"role":"assistant","content":"Noted."}'
_JSON = b'{"id":"c","object":"chat.completion","choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}' % _MESSAGE
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
_PLAIN = _HEAD % (len(_JSON), _JSON)
_BLOCKS = b'"content":[{"type":"text","text":"Noted."}],"model":"m","stop_reason":"end_turn"'
_ANTHROPIC_JSON = b'{"id":"m","type":"message","role":"assistant",%s}' % _BLOCKS
_ANTHROPIC = _HEAD % (len(_ANTHROPIC_JSON), _ANTHROPIC_JSON)
_TEXT = b'{"type":"output_text","text":"Noted.","annotations":[]}'
_ITEM = b'{"id":"m","type":"message","role":"assistant","status":"completed","content":[%s]}' % _TEXT
_OUTPUT = b'"status":"completed","model":"m","output":[%s],"error":null}' % _ITEM
_NUMBERS = itertools.count(100_000)
_SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def response() -> bytes:
    """A whole answer of `/v1/responses`; like a real server's, each has an id of its own."""
    body = b'{"id":"resp_%d","object":"response","created_at":1,%s' % (next(_NUMBERS), _OUTPUT)
    return _HEAD % (len(body), body)


async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length:" in line), 0
            )
            body = await reader.readexactly(length)
            if b'"stream":true' in body:
                await stream(writer)
            elif head.startswith(b"POST /v1/responses"):
                writer.write(response())
            elif head.startswith(b"POST /v1/messages"):
                writer.write(_ANTHROPIC)
            else:
                writer.write(_PLAIN)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def stream(writer: asyncio.StreamWriter) -> None:
    writer.write(_SSE_HEAD)
    for _ in range(CHUNKS):
        await asyncio.sleep(CHUNK_SECONDS)
        event = b'data: {"sent":%d,"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n' % time.time_ns()
        writer.write(b"%x\r\n%s\r\n" % (len(event), event))
    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))


async def main(port: int) -> None:
    server = await asyncio.start_server(serve_connection, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
