"""Keeps what was forgotten or withheld out of the summaries of sessions: the only place that decides so.

A summary stands on turns, in words that may be a model's. So nothing is taken out of a text: a turn that says what is
gone is left out for good, whatever session it is in, and the summary of its session is withdrawn in the same
transaction and made again from the rest, and notes that hold it are dropped. It is rather left out than kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import inf

from memory.language.restating import says_any, wording_of
from memory.model import Claim, Memory, MemoryStatus, SaidTurn
from memory.model.withdrawn import all_evidence
from memory.ports import Clock, NoteBook, SessionSummaries

TURNS_AT_ONCE = 500  # examined in some milliseconds
WITHDRAWN_BATCH = 200  # summaries


@dataclass(frozen=True, slots=True)
class Reach:
    """What was said by `until`, of exactly that project and session, or of all if they are empty."""

    project_id: str = ""
    until: float = inf
    session_id: str = ""


class SummaryExclusions:
    """Methods raise `Unavailable`; each may be repeated. Where turns are examined, `between` is awaited meanwhile."""

    def __init__(self, summaries: SessionSummaries) -> None:
        self._summaries = summaries

    async def leave_out(self, user_id: str, turn_ids: Collection[str]) -> None:
        """Something that these turns say is withheld, or they ask for that."""
        if turn_ids:
            await self._summaries.leave_out(user_id, sorted(turn_ids))

    async def leave_out_until(self, user_id: str, reach: Reach, *, spare: Collection[str] = ()) -> None:
        """Everything within reach is forgotten, but for the turns `spare`."""
        project_id, session_id = reach.project_id, reach.session_id
        await self._summaries.leave_out_until(
            user_id, project_id=project_id, session_id=session_id, until=reach.until, spare=spare
        )

    async def forget(self, user_id: str, memories: Sequence[Memory], *, between: Callable[[], Awaitable[None]]) -> None:
        """These memories are forgotten: the turns that they quote, or quoted, and all that say the same."""
        await self.leave_out(
            user_id, {quoted.turn_id for one in memories for quoted in all_evidence(one) if quoted.turn_id}
        )
        read = [one for one in memories if one.status is not MemoryStatus.RAW]  # of raw words nobody knows what counts
        statements = {*(one.content for one in read), *(quoted.words for one in read for quoted in all_evidence(one))}
        wordings = [wording_of(statement) for statement in sorted(statements)]
        if wordings:
            await self.leave_out_saying(user_id, lambda text: says_any(text, wordings), Reach(), between=between)

    async def leave_out_saying(
        self, user_id: str, says: Callable[[str], bool], reach: Reach, *, between: Callable[[], Awaitable[None]]
    ) -> None:
        """All turns within reach with a message of which `says` is true."""
        after, is_last = 0, False
        while not is_last:
            page = await self._summaries.said(
                user_id, project_id=reach.project_id, until=reach.until, after=after, limit=TURNS_AT_ONCE
            )
            is_last, after = len(page) < TURNS_AT_ONCE, page[-1].position if page else after
            await self.leave_out(user_id, await asyncio.to_thread(_saying, page, says))
            await between()


def turns_quoted(known: Iterable[Claim | Memory]) -> frozenset[str]:
    quotes = (one.evidence if isinstance(one, Memory) else (one.evidence,) for one in known)
    return frozenset(quoted.turn_id for of_one in quotes for quoted in of_one)


def _saying(turns: Iterable[SaidTurn], says: Callable[[str], bool]) -> list[str]:
    return [turn.turn_id for turn in turns if any(map(says, turn.messages))]


class WithdrawnSummaries:
    """Drops the notes that hold summaries which are gone. Whoever forgets does it at once; a worker does it for all
    other changes of turns, whether or not summaries are still made. Interrupted anywhere, it is repeated.

    Methods raise `Unavailable`. Several processes may run it: they only repeat each other's work.
    """

    def __init__(self, *, summaries: SessionSummaries, notes: NoteBook, clock: Clock) -> None:
        self._summaries = summaries
        self._notes = notes
        self._clock = clock

    async def drop(self, user_id: str = "") -> int:
        """Of this user, or of all; returns the number of summaries."""
        dropped = 0
        while gone := await self._summaries.withdrawn(user_id, limit=WITHDRAWN_BATCH):
            for user in dict.fromkeys(one.user_id for one in gone):
                ids = [summary_id for one in gone if one.user_id == user for summary_id in one.ids()]
                await self._notes.drop(user, ids, now=self._clock())
            await self._summaries.settle(gone)
            dropped += len(gone)
        return dropped
