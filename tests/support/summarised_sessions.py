"""Sessions that are summarised, as a worker does it, with texts that a test chooses."""

from __future__ import annotations

import numpy as np
from turn_logs import START, Process, lease_at, tell

from memory.model import DueSession, SessionSummary

IDLE = 1_800.0
LATER = START + IDLE
VECTOR = np.array([0.6, 0.8], dtype=np.float32)


async def learn_all(process: Process) -> None:
    while lease := await lease_at(process.log, START + 1):
        await process.log.acknowledge(lease)


async def talk(process: Process, *turn_ids: str, user: str = "ann", session: str = "s1", project: str = "") -> None:
    """Turns that were said and learnt."""
    for turn_id in turn_ids:
        await tell(process.log, turn_id, user=user, session=session, project=project)
    await learn_all(process)


async def due(process: Process, *, now: float = LATER, limit: int = 10) -> list[DueSession]:
    return await process.summaries.due(now=now, idle_seconds=IDLE, limit=limit)


async def sessions_due(process: Process, *, now: float = LATER) -> list[tuple[str, str]]:
    return [(one.user_id, one.session_id) for one in await due(process, now=now)]


def summary_of(session: DueSession, *turn_ids: str, text: str = "We sailed.") -> SessionSummary:
    return SessionSummary(
        session.user_id,
        session.session_id,
        session.version + 1,
        "The boat",
        text,
        START,
        START + 1,
        turn_ids,
        made_by="a test",
        made_at=LATER,
        series=session.series,
    )


async def summarised(process: Process, *turn_ids: str, user: str = "ann", session: str = "s1") -> SessionSummary:
    (found,) = [one for one in await due(process) if (one.user_id, one.session_id) == (user, session)]
    made = summary_of(found, *turn_ids)
    assert await process.summaries.put(found, made, VECTOR)
    return made


async def gone_and_due(process: Process, version: int = 1, *, now: float = START) -> bool:
    """The summary is gone, notes with it are to be dropped, and the session is due again, at once since it is over."""
    is_gone = await process.summaries.of_session("ann", "s1") is None
    told = [(one.session_id, one.version) for one in await process.summaries.withdrawn("ann", limit=10)]
    return is_gone and told == [("s1", version)] and ("ann", "s1") in await sessions_due(process, now=now)
