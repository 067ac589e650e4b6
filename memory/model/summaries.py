"""Summaries of sessions: what a conversation was about, for questions about past conversations. Never a fact."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from memory.model.memories import Vector

_IDS = uuid.UUID("8f2a4c1e-6b0d-5c7e-9a53-1f4e2d7b9c60")


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """`title` and `text`: one line each. `first_at`, `last_at`: when the turns were said, in Unix seconds.

    `turn_ids`: the turns that it stands on, oldest first. `version`: from 1, one more each time that the session went
    on. `made_by`: the reader or the model, with its version.
    """

    user_id: str
    session_id: str
    version: int
    title: str
    text: str
    first_at: float
    last_at: float
    turn_ids: tuple[str, ...]
    project_id: str = ""
    agent_id: str = ""
    made_by: str = ""
    made_at: float = 0.0

    @property
    def id(self) -> str:
        return summary_id(self.user_id, self.session_id, self.version)


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """`vector`: unit length; None if another embedding model made it."""

    summary: SessionSummary
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class DueSession:
    """A session that is over and has no current summary.

    `token` changes whenever the session does. `version`: of its last summary, 0 without one. `tries`: attempts that
    failed.
    """

    user_id: str
    session_id: str
    token: int
    version: int
    tries: int


@dataclass(frozen=True, slots=True)
class WithdrawnSummary:
    """A summary that is gone, with all its versions, because a turn of its session is."""

    user_id: str
    session_id: str
    version: int

    def ids(self) -> list[str]:
        """Of every version: past notes may hold any of them."""
        return [summary_id(self.user_id, self.session_id, number) for number in range(1, self.version + 1)]


def summary_id(user_id: str, session_id: str, version: int) -> str:
    return str(uuid.uuid5(_IDS, "\x1f".join((user_id, session_id, str(version)))))


__all__ = ["DueSession", "SessionSummary", "StoredSummary", "WithdrawnSummary", "summary_id"]
