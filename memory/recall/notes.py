"""Notes of earlier requests, put back where they stood, so that the prompt's prefix stays the same from turn to turn.

A chat client resends its own messages and knows nothing of our notes. If a note stood before message 4 in one request
and nowhere in the next, the model server would have to read everything after message 4 again: its prefix cache is
worth more than most memories. So each note is kept under a key that only that very conversation, up to that very
message, can have: the hash chain of the client's own messages within the user's scope. A regenerated or edited branch
has other keys.

Pure: keys in, notes out. Where notes are kept is the `NoteBook` port's business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from memory.model import Conversation, Note, PastNote, Placement, Role, Scope

ALL_NOTES_TOKENS_MAX = 2_000  # of one conversation: a long chat must not become a list of memories
KEY_CHARACTERS = 32  # 128 bits of SHA-256


def conversation_keys(scope: Scope, messages: Sequence[bytes | memoryview]) -> tuple[str, ...]:
    """One key for each of the client's messages (raw JSON): this conversation, up to and with that message."""
    seed = "\x1f".join((scope.user_id, scope.project_id, scope.agent_id))
    chain = hashlib.sha256(seed.encode())
    keys: list[str] = []
    for message in messages:
        chain.update(len(message).to_bytes(8, "big"))
        chain.update(message)
        keys.append(chain.hexdigest()[:KEY_CHARACTERS])
    return tuple(keys)


def last_user_index(conversation: Conversation) -> int | None:
    """Where the newest note stands: right before the last user message. None where no user speaks."""
    messages = conversation.messages
    return next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == Role.USER), None)


def found_at(keys: Sequence[str], past: Mapping[str, PastNote]) -> dict[int, PastNote]:
    """The past notes of this conversation by the index of the message that each stands before."""
    return {index: past[key] for index, key in enumerate(keys) if key in past}


def tokens_left(past: Mapping[int, PastNote], *, budget: int) -> int:
    """Tokens that a new note may have: its own budget, within what all notes of the conversation may have."""
    return max(0, min(budget, ALL_NOTES_TOKENS_MAX - sum(note.tokens for note in past.values())))


def placed_notes(past: Mapping[int, PastNote], placement: Placement) -> tuple[Note, ...]:
    """All notes where they belong: each before its message, or, for templates that allow one system message, merged."""
    if placement is Placement.OFF:
        return ()
    is_merged = placement is Placement.SYSTEM
    return tuple(Note(past[index].text, None if is_merged else index) for index in sorted(past))
