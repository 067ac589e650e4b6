"""Which exchange a request goes on from, where the client names it instead of sending it again."""

from __future__ import annotations

from typing import Protocol

from memory.model import ChainLink


class ResponseChains(Protocol):
    """Exchanges by the names that later requests may give them, of one user, bounded. Raises `Unavailable`.

    Names are the server's ids of responses and conversations, and keys of conversations whose tool loop is under way.
    An exchange that is lost is a new session and costs a repeated note, never an answer; so it may forget the oldest.
    """

    async def find(self, user_id: str, name: str) -> ChainLink | None:
        """None for what is not known of this user, whoever else's it may be, and for what is no id."""
        ...

    async def keep(self, user_id: str, names: tuple[str, ...], link: ChainLink, *, at: float) -> None:
        """In the place of an earlier one. This process finds it from the call on, all others on return.

        Names that are no ids are passed over.
        """
        ...
