"""An earlier exchange that a request may continue."""

from __future__ import annotations

from dataclasses import dataclass

NOTE_KEYS_MAX = 32  # more than fit into the token limit of all notes of a conversation


@dataclass(frozen=True, slots=True)
class ChainLink:
    """An exchange: its session, the turn that the user opened with it, and the notes in its prompt.

    `note_keys`: the keys of those notes in the note book, oldest first.
    """

    session_id: str
    turn_id: str
    note_keys: tuple[str, ...] = ()

    def followed_by(self, *note_keys: str) -> tuple[str, ...]:
        """The keys of an exchange that continues this one and adds these keys."""
        return tuple(dict.fromkeys((*self.note_keys, *filter(None, note_keys))))[-NOTE_KEYS_MAX:]
