"""An earlier exchange that a request may continue, and the names under which it is found."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from memory.model.identity import Scope, is_valid_id

NOTE_KEYS_MAX = 32  # more than fit into the token limit of all notes of a conversation
NAME_BYTES = 16


@dataclass(frozen=True, slots=True)
class ChainLink:
    """An exchange: its session, the turn that the user opened with it, and the notes in its prompt.

    `turn_id`: "" if the exchange is not recorded. `note_keys`: the keys of those notes in the note book, oldest first.
    """

    session_id: str
    turn_id: str
    note_keys: tuple[str, ...] = ()

    def followed_by(self, *note_keys: str) -> tuple[str, ...]:
        """The keys of an exchange that continues this one and adds these keys."""
        return tuple(dict.fromkeys((*self.note_keys, *filter(None, note_keys))))[-NOTE_KEYS_MAX:]


def link_name(scope: Scope, name: str) -> str:
    """The name of an exchange within the user's project and agent: in others it is unknown, so that neither session
    nor notes pass from one project to another.

    `name`: the server's id of a response or conversation. An invalid one stays as it is, and names nothing.
    """
    if not (scope.project_id or scope.agent_id) or not is_valid_id(name):
        return name
    seed = "\x1f".join((scope.project_id, scope.agent_id, name)).encode()
    return hashlib.blake2b(seed, digest_size=NAME_BYTES).hexdigest()
