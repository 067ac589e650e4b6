"""A conversation as a tree: what a client sends of it, which turns it no longer continues from, and by which names a
request continues an earlier exchange.

A turn is a node of the tree. The path from its root to the newest request is active; turns off that path, which were
regenerated or edited, are abandoned until the client continues with them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from memory.model.chats import Message
from memory.model.identity import Scope, is_valid_id

EARLIER_EXCHANGES_MAX = 200  # of a request: looked up, and filled in where they are missing
EARLIER_BYTES_MAX = 1 << 20  # of their texts; older ones are looked up and not filled in
NOTE_KEYS_MAX = 32  # more than fit into the token limit of all notes of a conversation
NAME_BYTES = 16


@dataclass(frozen=True, slots=True)
class SentExchange:
    """An earlier exchange as the client sends it again. `key`: of the conversation up to its last user message.

    `said`: the user's messages with text; empty if they are beyond the limit. `answer`: "" if there is none.
    `occurrence`: 1 for the first exchange of the request with these words, 2 for the second; where they are not
    distinctive, with this answer too. `is_recordable` False: its texts are only compared, never stored.
    """

    key: str
    said: tuple[Message, ...]
    answer: str
    occurrence: int = 1
    is_recordable: bool = True


@dataclass(frozen=True, slots=True)
class SentConversation:
    """The conversation of a request. `keys`: up to each of its new user messages, oldest first; never empty.

    `earlier`: the exchanges before them, oldest first. `continues`: the id of the turn that it continues, if the server
    stores the earlier part. `is_session_given`: whether the turn's session is fixed by the request, or else is only a
    proposal for a conversation that is not known yet.
    """

    keys: tuple[str, ...]
    earlier: tuple[SentExchange, ...] = ()
    continues: str = ""
    is_session_given: bool = False


@dataclass(frozen=True, slots=True)
class BranchTurn:
    """A turn whose memories have to be withdrawn or restored. A "yes" rests on the turn before it (`parent_id`)."""

    turn_id: str
    parent_id: str
    at: float


@dataclass(frozen=True, slots=True)
class BranchShift:
    """A user's turns that were abandoned or resumed, and whose memories do not show that yet."""

    abandoned: tuple[BranchTurn, ...] = ()
    resumed: tuple[BranchTurn, ...] = ()


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
