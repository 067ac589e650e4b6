"""States of long conversations: stored once, found by each later request of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.model import CompactedState, Conversation, Scope


class CompactedStates(Protocol):
    """States by conversation key, shared by all filters, bounded. Raises `Unavailable`.

    A key is that of the user message up to which the conversation had come when the state was made. Losing a state
    costs tokens, never an answer, so the oldest may be dropped.
    """

    async def find(self, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
        """The last of these keys that has a state, and its state."""
        ...

    async def keep(self, user_id: str, key: str, state: CompactedState, *, made_at: float) -> None:
        """Store the state, unless that key has one. On return, every process finds it.

        `made_at`: when the request began whose history it stands for. A state made before a `drop` of the user's is not
        stored.
        """
        ...

    async def drop(self, user_id: str, *, now: float) -> None:
        """Delete all states of this user, including those made until `now` that arrive later. Durable on return."""
        ...


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
