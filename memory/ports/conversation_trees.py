"""Where a request continues the user's conversations, by name or by what it sends again, and when nobody recorded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from memory.model import BranchShift, ChainLink, Scope, SentConversation, SentExchange, Turn


class ResponseChains(Protocol):
    """Exchanges by the names that later requests use for them; per user, limited in number. Raises `Unavailable`.

    Names are the server's ids of responses and conversations, and keys of conversations with an unfinished tool loop.
    The oldest exchanges may be dropped: the next request then starts a new session and may repeat a note.
    """

    async def find(self, user_id: str, name: str) -> ChainLink | None:
        """None for invalid ids, and for names that are unknown or belong to another user."""

    async def keep(self, user_id: str, names: tuple[str, ...], link: ChainLink, *, at: float) -> None:
        """Replaces an earlier exchange of the same name. Visible to this process at once, to all others on return.

        Names that are not valid ids are ignored.
        """

    async def said_before(self, scope: Scope, name: str, *, limit: int) -> list[Turn]:
        """The last recorded turns of that exchange's session, up to that exchange, oldest first.

        Of the scope's user, project and agent. Empty for unknown names. The cost does not depend on the length of the
        session.
        """

    async def erase(self, user_id: str) -> None:
        """Delete all exchanges of this user, for all processes. Durable on return."""


class ConversationTrees(Protocol):
    """The position of each turn in its conversation, shared by all processes. Per user. Raises `Unavailable`.

    The cost of a request depends on its new exchanges, not on the length of the conversation, except when it opens a
    branch. Bounded per user: conversations that are too old to be known count as new.
    """

    async def unknown(self, turn: Turn, sent: SentConversation) -> int:
        """How many of the newest earlier exchanges are not known, in the turn's session if that is given."""

    async def known(self, user_id: str, exchanges: Sequence[SentExchange]) -> list[bool]:
        """For each exchange, whether the user's record holds or held it in any session, or it must not be recorded.

        Records of other users change nothing, so that nobody learns what another said.
        """

    async def open(self, turn: Turn, sent: SentConversation) -> str:
        """Append the turn with status opened at its position, and return its session. One step, durable on return.

        Earlier exchanges after the longest known prefix that the user's record does not hold, and never held, are
        appended as filled in, and learnt like others: after a turn that was observed; or where nothing of the
        conversation is known, if it may have begun in a gap of `RecordingTimes`. They are dated before everything that
        may have been said since. Those that are not filled in then never will be.

        Turns that the request no longer continues from are abandoned: they are not learnt, and a shift tells of those
        that were. Turns that were being answered when the turn came, and that it does not repeat, are no branch until
        the conversation continues from one of them. Turns that it continues from again are resumed. A conversation
        without earlier exchanges is a new one.

        A conversation of which only the beginning is known, and that only from being sent again, is also a new one: its
        beginning may be examples in a prompt, which many conversations share.

        Returns "", and records nothing, if the user was erased since `turn.at`, or has opted out: then the exchange
        is left out.
        """

    async def open_known(self, turn: Turn, sent: SentConversation) -> str | None:
        """As `open`; None, and nothing is written, if something earlier is missing, which `open` would fill in."""

    async def leave_out(self, user_id: str, exchange: SentExchange) -> None:
        """That exchange must not be in this user's record: it is never filled in, also where its key is another one.

        Without a key it is recognised by its words, and left out only if they are distinctive. Other users are not
        concerned, and `erase` deletes it.
        """

    async def next_shift(self, *, without: Collection[str] = ()) -> str | None:
        """A user with a shift, other than these, or None. Cheap if there is none: may be called every 100 ms."""

    async def shift(self, user_id: str) -> BranchShift: ...

    async def settle(self, user_id: str, shift: BranchShift) -> None:
        """The user's memories show this shift. Turns that have changed again meanwhile stay in the next one."""

    async def erase(self, user_id: str) -> None:
        """Delete all positions of this user. What their conversations held is never filled in again."""


class RecordingTimes(Protocol):
    """The times of all processes that record turns, to find gaps. Raises `Unavailable`.

    A gap is a time in which no process recorded, or in which one died, was suspended, or lost turns.
    `ConversationTrees` reads the gaps: a conversation that is not known may have begun in one.
    """

    async def beat(self, *, missed_since: float | None = None) -> None:
        """This process records, and has recorded since its last call. Durable on return.

        The first call begins its recording: there is a gap before it, unless another process records.
        `missed_since`: the time since which it has lost turns.
        """

    async def end(self) -> None:
        """This process records no more. Without this call, its last beat ends its time."""
