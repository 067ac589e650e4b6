"""The endpoints of turns: imported ones, the sources of memories, and waiting until all of them are learnt."""

from __future__ import annotations

import msgspec
from litestar import Controller, delete, get, post
from litestar.params import JSONBody

from memory.api.bodies import messages_of
from memory.api.guards import bounded_project
from memory.api.memory_views import GivenText, GivenTime
from memory.api.operations import READS, WRITES, WRITES_PROJECTS, IdempotencyKey, PathId, TheCall, operation
from memory.api.times import TimeText, time_of, time_text_or_none, utc_offset_of
from memory.errors import BadInput
from memory.model import Scope


class TurnsBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Exchanges of one conversation from elsewhere. `at`: when the first was said."""

    session_id: str
    messages: msgspec.Raw
    at: GivenTime = None
    project_id: GivenText = None
    agent_id: GivenText = None
    trace_id: GivenText = None


class FlushBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """With a session: that session has ended."""

    session_id: GivenText = None


class AppendedTurn(msgspec.Struct, frozen=True):
    """The id of the last turn."""

    turn_id: str


class ForgottenSource(msgspec.Struct, frozen=True):
    """Counts of memories: those based on that turn alone, and those that other messages support."""

    deleted: int
    kept: int


class UnlearntTurns(msgspec.Struct, frozen=True):
    """Turns that wait for a retry or for the end of a reply, and those that were given up."""

    pending: int
    failed: int


class MemoryCounts(msgspec.Struct, frozen=True):
    active: int
    superseded: int
    archived: int


class StatsView(msgspec.Struct, frozen=True):
    """`by_type`: of the active memories."""

    memories: MemoryCounts
    by_type: dict[str, int]
    turns: UnlearntTurns
    opted_out: bool
    opted_out_since: TimeText | None


NO_SESSION = FlushBody()


class TurnsController(Controller):
    path = "/v1/memory"
    tags = ("turns",)

    @operation(post, "/turns", "appendTurns", allowed=WRITES_PROJECTS, errors=(422,), status_code=202)
    async def append(
        self, call: TheCall, data: JSONBody[TurnsBody], idempotency_key: IdempotencyKey = ""
    ) -> AppendedTurn:
        """Imports history from elsewhere: it goes through the same log and the same learning as a live turn."""
        if not data.session_id:
            raise BadInput("session_id must not be empty: it keeps the turns of one conversation together")
        project_id = bounded_project(call.caller, data.project_id or "")
        turn_id = await call.library.append_turn(
            Scope(call.user_id, project_id, data.session_id, data.agent_id or ""),
            messages_of(data.messages, "messages", call.library.envelopes, call.user_id),
            at=time_of(data.at, "at"),
            utc_offset=utc_offset_of(data.at),
            trace_id=data.trace_id or "",
            idempotency_key=idempotency_key,
        )
        return AppendedTurn(turn_id)

    @operation(delete, "/turns/{id:str}", "forgetTurn", allowed=WRITES, errors=(404, 409))
    async def forget(self, call: TheCall, path_id: PathId) -> ForgottenSource:
        """Forgets a source: what is based on that turn alone, and its text in the record and in all other evidence."""
        forgotten = await call.library.forget_source(call.user_id, path_id)
        return ForgottenSource(len(forgotten.forgotten), len(forgotten.kept))

    @operation(post, "/flush", "flush", allowed=WRITES)
    async def flush(self, call: TheCall, data: JSONBody[FlushBody] = NO_SESSION) -> UnlearntTurns:
        """Waits until everything said before this call is learnt."""
        left = await call.library.flush(call.user_id, data.session_id or "")
        return UnlearntTurns(left.pending, left.failed)

    @operation(get, "/stats", "getStats", allowed=READS)
    async def show_stats(self, call: TheCall) -> StatsView:
        """Counts of memories by status and type, and of turns that wait to be learnt."""
        stats = await call.library.stats(call.user_id)
        return StatsView(
            MemoryCounts(stats.active, stats.superseded, stats.archived),
            dict(stats.by_type),
            UnlearntTurns(stats.pending_turns, stats.failed_turns),
            stats.opted_out_since is not None,
            time_text_or_none(stats.opted_out_since),
        )
