"""What is known of an earlier exchange that a request may go on from."""

from __future__ import annotations

from dataclasses import dataclass

NOTE_KEYS_MAX = 32  # all notes of a conversation have a budget of tokens; so many never fit into it


@dataclass(frozen=True, slots=True)
class ChainLink:
    """An exchange: its session, the turn that the user opened with it, and the notes that its prompt held.

    `note_keys`: under which the note book may have them, oldest first.
    """

    session_id: str
    turn_id: str
    note_keys: tuple[str, ...] = ()

    def followed_by(self, *note_keys: str) -> tuple[str, ...]:
        """The keys of this exchange and of one that goes on from it with these."""
        return tuple(dict.fromkeys((*self.note_keys, *filter(None, note_keys))))[-NOTE_KEYS_MAX:]
