"""Reads notes of a note book by their keys, as a chat does."""

from __future__ import annotations

from collections.abc import Sequence

from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.notes import SqlNoteBook
from memory.adapters.sql.requests_by_name import SqlResponseChains
from memory.model import PastNote
from memory.ports import ChatStateQuery, NoteBook


async def notes_of(book: NoteBook, user_id: str, keys: Sequence[str]) -> dict[str, PastNote]:
    """The notes of those keys that have one, with their `made_at`."""
    assert isinstance(book, SqlNoteBook)
    states = SqlChatStates(book._database, book, SqlResponseChains(book._database), lambda: 0.0)
    return dict((await states.read(ChatStateQuery(user_id, tuple(keys)))).notes)
