"""What is stored that a chat needs before anything else, read at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memory.model import ChainLink, PastNote, Placement, Profile
from memory.ports.stores import Revision


@dataclass(frozen=True, slots=True)
class ChatStateQuery:
    """`note_keys`: of the conversation, oldest first. `link_name`: of the exchange that the request continues, if any.

    `project_ids`: whose profiles are wanted; "" is the user's own.
    """

    user_id: str
    note_keys: Sequence[str] = ()
    link_name: str = ""
    model: str = ""
    project_ids: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class ChatState:
    """`opted_out_at`: Unix seconds; None if memory may be used. `revision`: of the user's memories; None if unknown.

    `notes`: by key, those of `link` too. `link`: the exchange that the request continues, if that is known.
    `profiles`: by project, without lines of memories that were written since the lines were put. `placement`: where the
    model accepts notes; None if unknown.
    """

    opted_out_at: float | None = None
    revision: Revision | None = None
    notes: Mapping[str, PastNote] = field(default_factory=dict)
    link: ChainLink | None = None
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    placement: Placement | None = None


class ChatStates(Protocol):
    """All parts are as they are when the call begins, or later. Takes microseconds, or one round trip to a server."""

    async def read(self, query: ChatStateQuery) -> ChatState:
        """Raises `Unavailable`."""
        ...
