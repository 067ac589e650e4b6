"""What is the same for receipts on every adapter: no secrets, what a note held, and cursors of pages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from memory.errors import BadInput
from memory.model import Receipt

LAST = (1 << 63) - 1  # above every number that orders receipts


def without_secrets(receipt: Receipt, redact: Callable[[str], str]) -> Receipt:
    signals = {name: redact(value) if isinstance(value, str) else value for name, value in receipt.signals.items()}
    return replace(receipt, query=redact(receipt.query), signals=signals)


def held(receipt: Receipt, memory_id: str) -> bool:
    """Whether a note of the request held that memory."""
    return any(memory_id in note.memory_ids for note in receipt.notes)


def project_mark(project_id: str) -> str:
    """Names a project whose receipts were erased: by a digest, since the name has gone with them. It is no id."""
    return f" project/{hashlib.sha256(project_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def before(cursor: str) -> int:
    """The number that a page stays below. Raises `BadInput`."""
    if not cursor:
        return LAST
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < len(str(LAST))):
        raise BadInput("cursor must be the next_cursor of the page before")
    return int(cursor)
