"""What a request stores for later ones: notes, receipts, and the capabilities of models."""

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
from memory.ports.chat_states import ChatStates
from memory.ports.compaction import CompactedStates
from memory.ports.erasures import Erasures
from memory.ports.idempotency import IdempotencyKeys
from memory.ports.opt_outs import OptOuts
from memory.ports.profiles import Profiles
from memory.ports.projects import Projects
from memory.ports.summaries import SessionSummaries
from memory.ports.upkeep import UsageCounts
from memory.ports.windows import ModelWindows


class NoteBook(Protocol):
    """Notes of earlier requests by conversation key, shared by all filters, bounded. Raises `Unavailable`.

    Losing a note costs a prefix-cache hit, never an answer, so the oldest may be dropped.
    """

    async def keep(self, user_id: str, key: str, note: PastNote, *, made_at: float) -> None:
        """Replaces an earlier note of that key. On return, every later read of this process sees it.

        Those of others see it once it is written: with the end of its turn, or a second later.

        `made_at`: when the search for it began. A note made before a `drop` of one of its memories is not stored.
        """
        ...

    async def drop(self, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        """Drop every note with one of these memories, including notes made until `now` that arrive within a minute.

        An empty collection means all of the user's notes.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReceiptPage:
    """One page, latest first. `next_cursor` is "" on the last one."""

    receipts: tuple[Receipt, ...]
    next_cursor: str = ""


class Receipts(Protocol):
    """The receipts of requests; limited in number per user, in bytes and in age."""

    def keep(self, receipt: Receipt) -> None:
        """Visible to all processes soon after, unless the storage is down or busy. Never waits, never raises."""
        ...

    async def get(self, user_id: str, receipt_id: str) -> Receipt | None:
        """None if it does not exist, has expired, or belongs to somebody else. Raises `Unavailable`."""
        ...

    async def page(self, user_id: str, *, memory_id: str = "", limit: int, cursor: str = "") -> ReceiptPage:
        """The user's receipts, latest first. `memory_id`: only requests whose notes held that memory.

        Raises `BadInput` for a cursor that is none of ours, and `Unavailable`.
        """
        ...

    async def page_of_all(self, *, limit: int, cursor: str = "") -> ReceiptPage:
        """The receipts of all users, in the order in which they arrived, latest first. Raises as `page` does."""
        ...

    async def amend(self, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
        """Set the outcome of learning from that exchange, replacing an earlier one.

        Ignored if there is no such receipt. Durable on return; raises `Unavailable`.
        """
        ...

    async def erase(self, user_id: str, *, project_id: str = "") -> None:
        """Delete all receipts of this user, or those of chats in exactly that project, with the queries in them.

        Those that are on their way are not kept. Raises `Unavailable`.
        """
        ...


@dataclass(frozen=True, slots=True)
class RequestStores:
    """What is stored for requests and refers to memories by id: forgetting a memory includes all of it."""

    notes: NoteBook
    receipts: Receipts
    usage_counts: UsageCounts
    profiles: Profiles
    states: CompactedStates | None  # None: no history is compacted
    summaries: SessionSummaries
    idempotency: IdempotencyKeys
    opt_outs: OptOuts  # stays when a user is forgotten
    erasures: Erasures  # likewise, without the user's id
    projects: Projects
    chat_states: ChatStates


class ModelCapabilities(Protocol):
    """Capabilities of the upstream's models, shared by all filters. Raises `Unavailable`."""

    async def placement(self, model: str) -> Placement | None:
        """Where this model accepts notes; None if unknown."""
        ...

    async def learn(self, model: str, placement: Placement) -> None:
        """Visible to this process at once. Only changes to a more careful placement are stored."""
        ...


@dataclass(frozen=True, slots=True)
class ServerKnowledge:
    """What is known about the model server: the conversations it stores, and the windows of its models.

    `chains`: None where no conversations stored by the server are supported. `windows`: None bounds no note.
    """

    chains: ResponseChains | None = None
    windows: ModelWindows | None = None


class ChatTemplates(Protocol):
    """The upstream's own information about chat templates. For use in the background, not in a request."""

    async def placement(self, model: str) -> Placement | None:
        """The least restrictive placement that this model's template accepts; None if unknown. Never raises."""
        ...

    async def models(self) -> Sequence[str]:
        """Names of models that the upstream serves, possibly not all; empty if it does not tell. Never raises."""
        ...
