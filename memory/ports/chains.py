"""Links between exchanges, for requests that name an earlier exchange instead of sending it again."""

from __future__ import annotations

from typing import Protocol

from memory.model import ChainLink, Scope, Turn


class ResponseChains(Protocol):
    """Exchanges by the names that later requests use for them; per user, limited in number. Raises `Unavailable`.

    Names are the server's ids of responses and conversations, and keys of conversations with an unfinished tool loop.
    The oldest exchanges may be dropped: the next request then starts a new session and may repeat a note.
    """

    async def find(self, user_id: str, name: str) -> ChainLink | None:
        """None for invalid ids, and for names that are unknown or belong to another user."""
        ...

    async def keep(self, user_id: str, names: tuple[str, ...], link: ChainLink, *, at: float) -> None:
        """Replaces an earlier exchange of the same name. Visible to this process at once, to all others on return.

        Names that are not valid ids are ignored.
        """
        ...

    async def said_before(self, scope: Scope, name: str, *, limit: int) -> list[Turn]:
        """The last recorded turns of that exchange's session, up to that exchange, oldest first.

        Of the scope's user, project and agent. Empty for unknown names. The cost does not depend on the length of the
        session.
        """
        ...

    async def erase(self, user_id: str) -> None:
        """Delete all exchanges of this user, for all processes. Durable on return."""
        ...
