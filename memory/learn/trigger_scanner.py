"""Examines each finished turn once, in the background of the worker: marks urgent turns, and sheds turns under
overload.

Never part of a request, and optional: an unexamined turn is due when its session has been idle long enough. Several
scanners may examine the same turns. Logs no content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import structlog

from memory.errors import Unavailable
from memory.learn import triggers
from memory.learn.closeness import embedded_by
from memory.learn.readers import Readers
from memory.model import Urgency
from memory.ports import Embedder, FreshTurn, LearnDue, TurnTriage
from memory.runtime.tracing import Telemetry

TURNS_PER_LOOK = 32  # about 10 ms each, in a thread

log = structlog.get_logger(__name__)


class TriggerScanner:
    """Raises `Unavailable` while the turn log is down; without the embedder it continues without topic changes."""

    def __init__(
        self,
        *,
        turn_log: TurnTriage,
        embedder: Embedder,
        readers: Readers,
        due: LearnDue,
        telemetry: Telemetry,
        queue_turns_max: int,
    ) -> None:
        """`queue_turns_max`: finished turns that may wait to be learnt."""
        self._turn_log = turn_log
        self._embedded = embedded_by(embedder)
        self._readers = readers
        self._due = due
        self._clock = telemetry.clock
        self._metrics = telemetry.metrics
        self._queue_turns_max = queue_turns_max

    async def scan(self) -> None:
        """Examine and mark every finished turn that waits and is not marked."""
        # Otherwise everything is due at once and marks have no effect.
        if self._readers.is_slow and self._due.idle_seconds > 0:
            await self._examine_all()

    async def relieve(self) -> None:
        """Shed the least valuable turns while more are waiting than allowed."""
        keep, now = self._queue_turns_max, self._clock()
        depth = await self._turn_log.depth(now=now)
        if depth.due + depth.leased + depth.retrying <= keep:
            return
        await self._examine_all()
        shed = await self._turn_log.shed(now=now, keep=keep, window_turns=self._due.batch_turns_max)
        if shed:
            self._metrics.turns_shed.inc(shed)
            log.warning("more turns wait than may: the least valuable are shed", turns=shed)

    async def _examine_all(self) -> None:
        while fresh := await self._turn_log.unexamined(limit=TURNS_PER_LOOK):
            likeness = await self._likeness(fresh)
            await self._turn_log.mark({one.turn.id: await self._examined(one, likeness) for one in fresh})
            if len(fresh) < TURNS_PER_LOOK:
                break

    async def _examined(self, fresh: FreshTurn, likeness: Mapping[str, float]) -> Urgency:
        turn = triggers.shortened(fresh.turn)
        return triggers.examine(
            turn, await self._readers.ready.read([turn], context=fresh.earlier[-1:]), likeness=likeness.get(turn.id)
        )

    async def _likeness(self, fresh: Sequence[FreshTurn]) -> dict[str, float]:
        """By turn, the highest cosine to a waiting turn of its session. Turns without a topic are left out."""
        if self._due.idle_seconds <= 0:
            return {}
        topics = {one.turn.id: triggers.topic_text(one.turn) for one in fresh if one.earlier}
        before = {
            one.turn.id: [text for turn in one.earlier if (text := triggers.topic_text(turn))]
            for one in fresh
            if topics.get(one.turn.id)
        }
        comparable = {turn_id: texts for turn_id, texts in before.items() if texts}
        try:
            vectors = await self._embedded([text for i, texts in comparable.items() for text in (topics[i], *texts)])
        except Unavailable:
            return {}  # topics are then unknown, and only idle time decides
        return {
            turn_id: max(float(np.dot(vectors[topics[turn_id]], vectors[text])) for text in texts)
            for turn_id, texts in comparable.items()
        }
