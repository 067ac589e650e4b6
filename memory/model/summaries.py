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
    on. `series`: the same for versions that replaced one another, another one after a withdrawal, so that no id comes
    twice. `made_by`: the reader or the model, with its version.
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
    series: int = 0

    @property
    def id(self) -> str:
        return summary_id(self.user_id, self.session_id, self.series, self.version)


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """`vector`: unit length; None if another embedding model made it."""

    summary: SessionSummary
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class DueSession:
    """A session that is over and has no current summary.

    `token` changes whenever the session does. `version`, `series`: of its last summary; without one 0 and a new series.
    `tries`: attempts so far.
    """

    user_id: str
    session_id: str
    token: int
    version: int
    tries: int
    series: int


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """What the user said in a turn. `position`: in the order of recording."""

    position: int
    turn_id: str
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WithdrawnSummary:
    """A summary that is gone, with all its versions, because a turn of its session is."""

    user_id: str
    session_id: str
    series: int
    version: int

    def ids(self) -> list[str]:
        """Of every version: past notes may hold any of them."""
        return [summary_id(self.user_id, self.session_id, self.series, number) for number in range(1, self.version + 1)]


def summary_id(user_id: str, session_id: str, series: int, version: int) -> str:
    return str(uuid.uuid5(_IDS, "\x1f".join((user_id, session_id, str(series), str(version)))))
