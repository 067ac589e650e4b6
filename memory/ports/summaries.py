"""Summaries of sessions, and which sessions need one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from memory.model import DueSession, SaidTurn, SessionSummary, StoredSummary, Turn, Vector, WithdrawnSummary


class SessionSummaries(Protocol):
    """Shared by all processes, in the transactions of the turn log. Raises `Unavailable`.

    A summary is gone in the same transaction in which a turn of its session is deleted, changed, withdrawn, abandoned,
    resumed or left out; its session is then due again. A session that goes on keeps its summary until the next one.
    """

    async def of_session(self, user_id: str, session_id: str) -> SessionSummary | None: ...

    async def get(self, user_id: str, ids: Collection[str]) -> list[SessionSummary]:
        """Those that are current."""

    async def of_user(self, user_id: str, *, limit: int) -> list[StoredSummary]:
        """The latest, by `last_at`, newest first. Some milliseconds for some hundreds, apart from the loop."""

    async def end(self, user_id: str, session_id: str) -> None:
        """The session is over, however short it has been idle; the next turn of it revokes that. Durable on return."""

    async def is_ended(self, user_id: str, session_id: str) -> bool:
        """Whether `end` was called since its last turn, or the session was looked at since."""

    async def leave_out(self, user_id: str, turn_ids: Collection[str]) -> None:
        """These turns are never part of a summary again. Unknown ids are ignored. Durable on return."""

    async def leave_out_until(
        self, user_id: str, *, project_id: str, session_id: str = "", until: float, spare: Collection[str] = ()
    ) -> None:
        """The same for all turns said by that time but `spare`, of exactly that project and session, or of all if they
        are empty.
        """

    async def said(self, user_id: str, *, project_id: str, until: float, after: int, limit: int) -> list[SaidTurn]:
        """The turns that are, or may become, part of a summary: recorded after the position `after`, in their order.

        `project_id`, `until`: as for `leave_out_until`.
        """

    async def withdrawn(self, user_id: str = "", *, limit: int) -> list[WithdrawnSummary]:
        """Summaries that are gone and may still stand in notes; of all users if none is named. Cheap without any."""

    async def settle(self, withdrawn: Sequence[WithdrawnSummary]) -> None:
        """No note holds these any more."""

    async def erase(self, user_id: str) -> None:
        """Delete everything of this user, also what is due. Durable on return."""


class SummaryQueue(Protocol):
    """The sessions that are over and need a summary. Raises `Unavailable`."""

    async def due(self, *, now: float, idle_seconds: float, limit: int) -> list[DueSession]:
        """The longest waiting session of each user, idle so long or ended; never one with turns still to be learnt.

        Cheap if there are none: may be called every second.
        """

    async def turns(self, due: DueSession, *, limit: int) -> list[Turn]:
        """The session's last turns that may be part of a summary, oldest first: only turns that were learnt, since
        nobody knows what the others ask to forget.
        """

    async def put(self, due: DueSession, summary: SessionSummary | None, vector: Vector | None) -> bool:
        """Replace the session's summary; None: it needs none. The session is no longer due.

        Nothing is stored, and False returned, if the session has changed since `due` was read.
        """

    async def postpone(self, due: DueSession, *, until: float) -> None:
        """Before each try, which it counts, so that no failure is forgotten. Other sessions of the user are not held
        up, and a session that changes is due again.
        """
