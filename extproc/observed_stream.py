"""The shell of one observed exchange: runs its state machine, in a thread where that takes long, and records it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from extproc.exchange import CloseTurn, LeaveOut, Observed, OpenTurn
from extproc.identity import Metadata
from extproc.large_bodies import LIGHT, Work
from extproc.observe import Observation
from extproc.recorder import Opening, TurnRecorder
from extproc.turn_links import ContinueTurn, LinkExchange
from memory.model import TurnStatus

UNREAD_BYTES_MAX = 256 << 20  # of requests whose replies have not begun: beyond it, each is read when it is whole

Seen: TypeAlias = Observed | None
Step: TypeAlias = Callable[[Observation], Seen]


class ObservedStream:
    """One exchange being observed: its state machine, and the pending parsing and writing."""

    def __init__(self, recorder: TurnRecorder, observation: Observation) -> None:
        self._recorder = recorder
        self._observation = observation
        self._reading: asyncio.Task[None] | None = None
        self._opening: Opening | None = None
        self._work: Work = LIGHT  # around what takes long
        self._unread_bytes = 0  # as the recorder counts them

    @property
    def is_idle(self) -> bool:
        return self._observation.is_idle

    async def take(self, step: Step, *, ends_reply: bool) -> None:
        """Pass the next message to the state machine. `ends_reply`: which is parsed now."""
        observation = self._observation
        if ends_reply and observation.is_heavy:
            await self._read_apart(self._in_thread(step))
            return
        self._record(step(observation))
        if observation.is_request_large and not self._recorder.large_bodies.has_room(observation.exchange):
            observation.drop_request()
        if observation.is_unread and not observation.is_dropped:
            self._unread_bytes = observation.request_size
            self._recorder.unread_bytes += self._unread_bytes
            if self._recorder.unread_bytes > UNREAD_BYTES_MAX:
                await self._read()

    async def begin_reply(self, left: Metadata) -> None:
        """Open the turn of the request, unless inject has left word that it is open."""
        link = self._observation.on_left(left)
        if link is not None:
            self._opening = asyncio.get_running_loop().create_future()
            self._opening.set_result(link)
        await self._read()

    def end(self) -> None:
        """The stream is over, for whatever reason. Does not wait."""
        if self._reading is not None or self._observation.is_heavy:
            self._recorder.start(self._end_later(self._reading))
        else:
            self._release()
            self._read_now()
            self._record(self._last(self._observation))

    async def _read(self) -> None:
        self._release()
        if self._observation.is_heavy and self._observation.is_unread:
            await self._read_apart(self._in_turn())
        else:
            self._read_now()

    def _release(self) -> None:
        self._recorder.unread_bytes -= self._unread_bytes
        self._unread_bytes = 0

    def _read_now(self) -> None:
        if self._observation.is_unread and self._observation.is_dropped:
            self._recorder.pass_by()
        self._record(self._observation.read_request())

    async def _read_apart(self, reading: Coroutine[None, None, None]) -> None:
        """Also to its end if the stream is cancelled."""
        self._reading = self._recorder.start(reading)
        await asyncio.shield(self._reading)

    async def _in_turn(self) -> None:
        bodies, exchange = self._recorder.large_bodies, self._observation.exchange
        if not await bodies.has_turn(exchange):
            self._observation.drop_request()
            self._read_now()
            return
        self._work = partial(bodies.work, exchange)
        with self._work():
            await self._in_thread(Observation.read_request)

    async def _in_thread(self, step: Step) -> None:
        self._record(await asyncio.to_thread(step, self._observation))

    async def _end_later(self, reading: asyncio.Task[None] | None) -> None:
        """The state machine is not thread-safe: wait until the thread has left it."""
        if reading is not None:
            await reading
        await self._read()
        await self._in_thread(self._last)

    def _last(self, observation: Observation) -> Seen:
        return observation.on_end(at=self._recorder.clock())

    def _record(self, seen: Seen) -> None:
        if self._observation.note_outcome is not None:
            self._recorder.record_note_outcome(self._observation.note_outcome)
            self._observation.note_outcome = None
        if self._observation.length_refusal is not None:
            self._recorder.record_length_refusal(self._observation.length_refusal)
            self._observation.length_refusal = None
        match seen:
            case OpenTurn():
                self._opening = self._recorder.open(seen, self._work)
            case LeaveOut():
                self._recorder.leave_out(seen, self._work)
            case ContinueTurn():
                self._recorder.continue_turn(seen)
            case LinkExchange():
                self._recorder.link_exchange(seen)
            case CloseTurn() if self._opening is not None:
                if self._recorder.is_leaving and seen.status is TurnStatus.ABORTED:
                    seen = replace(seen, status=TurnStatus.UNKNOWN)
                self._recorder.close(seen, after=self._opening)
