"""By which words an exchange is recognised, wherever it stands: in any session, project or agent. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from memory.model.chats import Message, Role

DISTINCTIVE_BYTES_MIN = 16  # of UTF-8: shorter messages ("yes", "Thank you!") are said again and again
DIGEST_BYTES = 16


def words_of(messages: Iterable[Message]) -> str:
    """What the user said, with white space folded: clients trim and merge messages."""
    said = (one.content for one in messages if one.role == Role.USER and not one.is_tool_traffic)
    return folded(" ".join(said))


def folded(text: str) -> str:
    return " ".join(text.split())


def digest_of(text: str, *, key: bytes) -> str:
    """`key`: secret, at most 64 bytes; short texts could be guessed from a digest without one."""
    words = folded(text).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(words, digest_size=DIGEST_BYTES, key=key).hexdigest()


def is_distinctive(text: str) -> bool:
    """Whether the same text twice is the same statement, and not by chance."""
    return len(text.encode("utf-8", "surrogatepass")) >= DISTINCTIVE_BYTES_MIN
