"""What a chat reads before anything else, and what it and calls of the API store for later ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from memory.model import ChainLink, CompactedState, Conversation, PastNote, Placement, Profile, Receipt, Scope
from memory.ports.erasures import Erasures, OptOuts
from memory.ports.paging import Page
from memory.ports.profiles import Profiles
from memory.ports.projects import Projects
from memory.ports.stores import Revision
from memory.ports.summaries import SessionSummaries
from memory.ports.upkeep import UsageCounts


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

    def last_known(self, query: ChatStateQuery) -> ChatState | None:
        """For while `read` fails: what this process read last for the user and model, without notes and link.

        None if it read nothing, or if that was withdrawn until about a second before the outage (an opt-out, an
        erasure, something forgotten), or may have been: after two minutes, or where nobody follows.
        """

    async def follow_withdrawals(self) -> None:
        """Learn what is withdrawn, until cancelled. Never raises."""


class CompactedStates(Protocol):
    """States by conversation key, shared by all filters, bounded. Raises `Unavailable`.

    A key is that of the user message up to which the conversation had come when the state was made. Losing a state
    costs tokens, never an answer, so the oldest may be dropped.
    """

    async def find(self, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
        """The last of these keys that has a state, and its state."""

    async def keep(self, user_id: str, key: str, state: CompactedState, *, made_at: float) -> None:
        """Store the state, unless that key has one. On return, every process finds it.

        `made_at`: when the request began whose history it stands for. A state made before a `drop` of the user's is not
        stored.
        """

    async def drop(self, user_id: str, *, now: float) -> None:
        """Delete all states of this user, including those made until `now` that arrive later. Durable on return."""


@dataclass(frozen=True, slots=True)
class ResentHistory:
    """A conversation whose state may be due, as a client has sent it.

    `keys`: of its user messages, by index. `clean_cuts`: computes the indexes of user messages before which it may be
    cut; not cheap. `asked_at`: when the request began, before it looked for a state; Unix seconds. `state`: what was
    found for this request, with its key.
    """

    scope: Scope
    conversation: Conversation
    keys: Mapping[int, str]
    clean_cuts: Callable[[], Collection[int]]
    asked_at: float
    state: tuple[str, CompactedState] | None = None


class NoteBook(Protocol):
    """Notes of earlier requests by conversation key, shared by all filters, bounded. Raises `Unavailable`.

    Losing a note costs a prefix-cache hit, never an answer, so the oldest may be dropped.
    """

    async def keep(self, user_id: str, key: str, note: PastNote, *, made_at: float) -> None:
        """Replaces an earlier note of that key. On return, every later read of this process sees it.

        Those of others see it once it is written: with the end of its turn, or a second later.

        `made_at`: when the search for it began. A note made before a `drop` of one of its memories is not stored.
        """

    async def drop(self, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        """Drop every note with one of these memories, including notes made until `now` that arrive within a minute.

        An empty collection means all of the user's notes.
        """


class Receipts(Protocol):
    """The receipts of requests; limited in number per user, in bytes and in age."""

    def keep(self, receipt: Receipt) -> None:
        """Visible to all processes soon after, unless the storage is down or busy. Never waits, never raises."""

    async def get(self, user_id: str, receipt_id: str) -> Receipt | None:
        """None if it does not exist, has expired, or belongs to somebody else. Raises `Unavailable`."""

    async def page(
        self, user_id: str, *, memory_id: str = "", is_asked: bool = False, limit: int, cursor: str = ""
    ) -> Page[Receipt]:
        """The user's receipts, latest first. `memory_id`: only requests whose notes held that memory. `is_asked`: only
        chats that asked something of memory itself, of which it is known what became.

        Raises `BadInput` for a cursor that is none of ours, and `Unavailable`.
        """

    async def page_of_all(self, *, limit: int, cursor: str = "") -> Page[Receipt]:
        """The receipts of all users, in the order in which they arrived, latest first. Raises as `page` does."""

    async def amend(self, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
        """Set the outcome of learning from that exchange, replacing an earlier one.

        Ignored if there is no such receipt. Durable on return; raises `Unavailable`.
        """

    async def erase(self, user_id: str, *, project_id: str = "") -> None:
        """Delete all receipts of this user, or those of chats in exactly that project, with the queries in them.

        Those that are on their way are not kept. Raises `Unavailable`.
        """


@dataclass(frozen=True, slots=True)
class RequestStores:
    """What is stored for requests and refers to memories by id: forgetting a memory includes all of it."""

    notes: NoteBook
    receipts: Receipts
    usage_counts: UsageCounts
    profiles: Profiles
    states: CompactedStates
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

    async def learn(self, model: str, placement: Placement) -> None:
        """Visible to this process at once. Only changes to a more careful placement are stored."""


class ChatTemplates(Protocol):
    """The upstream's own information about chat templates. For use in the background, not in a request."""

    async def placement(self, model: str) -> Placement | None:
        """The least restrictive placement that this model's template accepts; None if unknown. Never raises."""

    async def models(self) -> Sequence[str]:
        """Names of models that the upstream serves, possibly not all; empty if it does not tell. Never raises."""


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """The first call with a key. `answer`: None until that call has ended well."""

    fingerprint: bytes
    claimed_at: float
    answer: tuple[str, ...] | None = None


class IdempotencyKeys(Protocol):
    """Keys by which clients repeat a call without repeating its effect: of each user, durable, for a day.

    Raises `Unavailable`.
    """

    async def claim(self, user_id: str, key: str, *, fingerprint: bytes, now: float) -> KeyClaim:
        """The claim of the first call with this key, or this one; of concurrent calls, all get the same."""

    async def answered(self, user_id: str, key: str, answer: Sequence[str]) -> None:
        """Remember what the call returned. Ignored if the key is not there any more."""

    async def erase(self, user_id: str) -> None: ...
