"""Converts the texts of turns to bytes and back, for every adapter of the turn log.

Oversized content is truncated, never refused: the beginning and the end of what the user said are worth keeping.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from memory.model import Message

MESSAGES_BYTES_MAX = 1 << 20  # of one turn's user messages in UTF-8: anything larger is pasted text
MESSAGES_MAX = 1_000  # of one turn: for clients that never send an assistant message
ANSWER_BYTES_MAX = 1 << 20  # as much as the observer keeps of a reply


def messages_of(stored: bytes) -> tuple[Message, ...]:
    return tuple(Message(*fields) for fields in json.loads(to_text(stored)))


def to_bytes(text: str) -> bytes:
    """UTF-8 that preserves lone surrogates, which JSON bodies may contain."""
    return text.encode("utf-8", "surrogatepass")


def to_text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")


def cut(text: bytes, bytes_max: int) -> bytes:
    """At most `bytes_max` bytes, ending with a whole character."""
    if len(text) <= bytes_max:
        return text
    end = bytes_max
    while text[end] & 0xC0 == 0x80:  # a continuation byte: the character starts before it
        end -= 1
    return text[:end]


def messages_to_bytes(messages: Sequence[Message]) -> bytes:
    """The newest messages that fit completely, then the beginning of the next one."""
    kept: list[tuple[str, str, bool]] = []
    room = MESSAGES_BYTES_MAX
    for message in reversed(messages[-MESSAGES_MAX:]):
        content = to_bytes(message.content)
        kept.append((message.role, to_text(cut(content, room)), message.is_tool_traffic))
        room -= len(content)
        if room <= 0:
            break
    return to_bytes(json.dumps(kept[::-1], ensure_ascii=False, separators=(",", ":")))
