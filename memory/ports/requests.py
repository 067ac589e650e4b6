"""What a request leaves behind for later ones: notes, receipts, and what was learnt about a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memory.model import (
    PastNote,
    Placement,
    Receipt,
)
from memory.ports.chains import ResponseChains
from memory.ports.upkeep import Uses


class NoteBook(Protocol):
    """Notes of earlier requests by conversation key, shared by all filters, bounded. Raises `Unavailable`.

    Losing a note costs a prefix, never an answer, so it may forget the oldest.
    """

    async def find(self, user_id: str, keys: Sequence[str]) -> dict[str, PastNote]:
        """Those of the keys that have a note."""
        ...

    async def keep(self, user_id: str, key: str, note: PastNote, *, made_at: float) -> None:
        """In the place of an earlier note of that key. On return, every later `find` of this process sees it.

        So does that of any other process which takes requests from the same proxy.

        `made_at` is when the search behind it began. A note made before a `drop` of one of its memories is not kept.
        """
        ...

    async def drop(self, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        """Forget every note that holds one of these memories, also those made until `now` that come within a minute.

        An empty collection means all of the user's notes.
        """
        ...


class Receipts(Protocol):
    """What was decided for a request, and why; bounded per user, in bytes and in time."""

    def keep(self, receipt: Receipt) -> None:
        """Readable by every process soon after, unless the part is down or busy. Never waits, never raises."""
        ...

    async def get(self, user_id: str, receipt_id: str) -> Receipt | None:
        """None for one that never was, is too old, or is somebody else's. Raises `Unavailable`."""
        ...

    async def amend(self, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
        """Put in what learning from that exchange did, in the place of what was put in before.

        Ignored for a receipt that is not there. Durable on return; raises `Unavailable`.
        """
        ...

    async def erase(self, user_id: str) -> None:
        """All of this user's, with the words that they quote. Raises `Unavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class RequestTraces:
    """What requests leave behind that names memories: whoever forgets one has to look there."""

    notes: NoteBook
    receipts: Receipts
    uses: Uses


class ModelTraits(Protocol):
    """What was learnt about the upstream's models, shared by all filters. Raises `Unavailable`."""

    async def placement(self, model: str) -> Placement | None:
        """Where a note may stand for this model; None: nothing is known. What others learnt is seen within seconds."""
        ...

    async def learn(self, model: str, placement: Placement) -> None:
        """Seen by this process at once. Once `off` is known, `system` is no news: it only ever becomes more careful."""
        ...


@dataclass(frozen=True, slots=True)
class ServerKnowledge:
    """What is known of the model server: where its models take notes, and which conversations it holds.

    `chains`: None for whoever serves no conversations that a server holds.
    """

    traits: ModelTraits
    chains: ResponseChains | None = None


class ChatTemplates(Protocol):
    """What the upstream itself says about its models' chat templates. May be asked beside a request, never in it."""

    async def placement(self, model: str) -> Placement | None:
        """The freest placement that this model's template takes; None: the server cannot tell. Never raises."""
        ...

    async def models(self) -> Sequence[str]:
        """Some of the models that it serves, by the names that chats use; none where it does not say. Never raises."""
        ...
