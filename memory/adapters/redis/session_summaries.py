"""Summaries of sessions on Redis, under the version of the user's queue, with whose commits they are withdrawn.

So no code that changes a turn has to know about summaries: it names what happens to the session (`session_events`). A
token per session changes with each of these events, and a summary is stored only if it is still the one that was read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from memory.adapters.redis import queue_values, summary_values
from memory.adapters.redis.log_client import Command, LogClient, Reply
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_store import Planned, QueueIndexes, QueueStore
from memory.adapters.redis.queue_values import UserQueue
from memory.adapters.redis.session_events import AT_ONCE, QUIET, TOKEN, TRIES, Changed, NeedsNone, Rests
from memory.adapters.redis.session_turns import SessionTurns
from memory.adapters.redis.summary_values import Attempts, DueRow
from memory.adapters.redis.user_index import Look, Marked
from memory.model import DueSession, SaidTurn, SessionSummary, StoredSummary, Turn, Vector, WithdrawnSummary

TEXTS_READ_MAX = 200  # summaries read at a time


class RedisSummaries:
    """`memory.ports.SessionSummaries` and `SummaryQueue`.

    `origin`: names the model of the vectors; vectors of another origin are not returned.
    """

    def __init__(self, client: LogClient, *, origin: str = "") -> None:
        self._client = client
        self._store = QueueStore(client)
        self._turns = SessionTurns(client)
        self._indexes = QueueIndexes(client)
        self._origin = origin

    async def of_session(self, user_id: str, session_id: str) -> SessionSummary | None:
        stored = await self._client.call("HGET", UserKeys(user_id).summaries, session_id)
        return None if stored is None else summary_values.decode_summary(stored).summary

    async def get(self, user_id: str, ids: Collection[str]) -> list[SessionSummary]:
        if not ids:
            return []
        heads = await self._client.call("HGETALL", UserKeys(user_id).summary_heads)
        sessions = [session for session, head in heads.items() if summary_values.decode_head(head).id in ids]
        return [one.summary for one in await self._stored(user_id, sessions) if one.summary.id in ids]

    async def of_user(self, user_id: str, *, limit: int) -> list[StoredSummary]:
        heads = await self._client.call("HGETALL", UserKeys(user_id).summary_heads)
        latest = sorted(heads, key=lambda session: (-summary_values.decode_head(heads[session]).last_at, session))
        found: list[StoredSummary] = []
        for start in range(0, len(latest), TEXTS_READ_MAX):
            found += await self._stored(user_id, latest[start : start + TEXTS_READ_MAX])
            if len(found) >= limit:
                break
        return found[:limit]

    async def end(self, user_id: str, session_id: str) -> None:
        due = UserKeys(user_id).due_summaries

        def ending(_: UserQueue, replies: Sequence[Reply]) -> Planned[None]:
            return Planned(None, sessions=[Rests(session_id, AT_ONCE)] if replies[0] else [])

        await self._store.change(user_id, ending, reading=[("HEXISTS", due, QUIET + session_id)])

    async def is_ended(self, user_id: str, session_id: str) -> bool:
        quiet_since = await self._client.call("HGET", UserKeys(user_id).due_summaries, QUIET + session_id)
        return quiet_since is None or float(quiet_since) == AT_ONCE

    async def leave_out(self, user_id: str, turn_ids: Collection[str]) -> None:
        async for sessions in self._turns.sessions_of(user_id, turn_ids):
            await self._leave_out(user_id, sessions)

    async def leave_out_until(
        self, user_id: str, *, project_id: str, until: float, spare: Collection[str] = ()
    ) -> None:
        async for sessions in self._turns.said_until(user_id, project_id=project_id, until=until):
            await self._leave_out(user_id, {turn: one for turn, one in sessions.items() if turn not in spare})

    async def said(self, user_id: str, *, project_id: str, until: float, after: int, limit: int) -> list[SaidTurn]:
        return await self._turns.said(user_id, project_id=project_id, until=until, after=after, limit=limit)

    async def withdrawn(self, user_id: str = "", *, limit: int) -> list[WithdrawnSummary]:
        if user_id:
            return (await self._withdrawn_of([UserKeys(user_id)]))[0][:limit]
        users = await self._indexes.withdrawn_summaries.search(self._look_at_withdrawn, limit=limit)
        return [one for withdrawn in users for one in withdrawn][:limit]

    async def settle(self, withdrawn: Sequence[WithdrawnSummary]) -> None:
        by_user: dict[str, list[WithdrawnSummary]] = {}
        for one in withdrawn:
            by_user.setdefault(one.user_id, []).append(one)
        for user_id, own in by_user.items():
            keys = UserKeys(user_id)
            sessions = [one.session_id for one in own]
            fields = [summary_values.withdrawn_field(one.session_id, one.series) for one in own]
            reading = [
                ("HMGET", keys.summary_heads, *sessions),
                ("HMGET", keys.summaries, *sessions),
                ("HMGET", keys.withdrawn_summaries, *fields),
            ]
            await self._store.change(user_id, partial(_settle, keys=keys, withdrawn=own), reading=reading)

    async def erase(self, user_id: str) -> None:
        deleting: list[Command] = [("DEL", key) for key in UserKeys(user_id).of_summaries]
        await self._store.change(user_id, lambda queue, _: Planned(None, commands=deleting))

    async def due(self, *, now: float, idle_seconds: float, limit: int) -> list[DueSession]:
        looking = partial(self._look_at_due, now=now, idle_seconds=idle_seconds)
        return await self._indexes.due_summaries.search(looking, until=now - idle_seconds, limit=limit)

    async def turns(self, due: DueSession, *, limit: int) -> list[Turn]:
        return await self._turns.learnt(due.user_id, due.session_id, limit=limit)

    async def put(self, due: DueSession, summary: SessionSummary | None, vector: Vector | None) -> bool:
        keys, session = UserKeys(due.user_id), due.session_id
        text = None if summary is None else summary_values.encode_summary(summary, vector, self._origin)
        putting = partial(_put, keys=keys, due=due, summary=summary, text=text)
        reading: list[Command] = [
            ("HGET", keys.due_summaries, TOKEN + session),
            ("HGET", keys.summary_heads, session),
            ("HEXISTS", keys.summaries, session),
        ]
        return await self._store.change(due.user_id, putting, reading=reading)

    async def postpone(self, due: DueSession, *, until: float) -> None:
        keys = UserKeys(due.user_id)

        def postponing(_: UserQueue, replies: Sequence[Reply]) -> Planned[None]:
            token, stored = replies[0]
            if token is None or int(token) != due.token:
                return Planned(None)
            attempts = Attempts(until, summary_values.decode_attempts(stored).tries + 1)
            storing = summary_values.encode_attempts(attempts)
            return Planned(None, commands=[("HSET", keys.due_summaries, TRIES + due.session_id, storing)])

        fields = (TOKEN + due.session_id, TRIES + due.session_id)
        await self._store.change(due.user_id, postponing, reading=[("HMGET", keys.due_summaries, *fields)])

    async def _stored(self, user_id: str, sessions: Sequence[bytes]) -> list[StoredSummary]:
        """The current ones."""
        texts = await self._client.call("HMGET", UserKeys(user_id).summaries, *sessions) if sessions else []
        return [summary_values.decode_summary(text, origin=self._origin) for text in texts if text is not None]

    async def _leave_out(self, user_id: str, sessions: Mapping[str, str]) -> None:
        """`sessions`: by turn."""
        if not sessions:
            return
        keys, turn_ids = UserKeys(user_id), list(sessions)

        def leaving_out(_: UserQueue, replies: Sequence[Reply]) -> Planned[None]:
            new = [turn_id for turn_id, is_known in zip(turn_ids, replies[0], strict=True) if not is_known]
            if not new:
                return Planned(None)
            changed = [Changed(session) for session in sorted({sessions[turn_id] for turn_id in new})]
            return Planned(None, commands=[("SADD", keys.in_no_summary, *new)], sessions=changed)

        await self._store.change(user_id, leaving_out, reading=[("SMISMEMBER", keys.in_no_summary, *turn_ids)])

    async def _withdrawn_of(self, users: Sequence[UserKeys]) -> list[list[WithdrawnSummary]]:
        commands: list[Command] = []
        for keys in users:
            commands += [("GET", keys.user), ("HGETALL", keys.summary_heads), ("HKEYS", keys.summaries)]
            commands += [("HGETALL", keys.withdrawn_summaries)]
        replies = await self._client.calls(commands)
        found: list[list[WithdrawnSummary]] = []
        for at in range(0, len(replies), 4):
            user, heads, current, earlier = replies[at : at + 4]
            found.append(summary_values.withdrawn_of((user or b"").decode(), heads, current, earlier))
        return found

    async def _look_at_withdrawn(self, page: Sequence[Marked]) -> list[Look[list[WithdrawnSummary]]]:
        found = await self._withdrawn_of([UserKeys.of_digest(marked.member) for marked in page])
        return [Look(own, marked.place) if own else Look(None, None) for own, marked in zip(found, page, strict=True)]

    async def _look_at_due(self, page: Sequence[Marked], *, now: float, idle_seconds: float) -> list[Look[DueSession]]:
        commands: list[Command] = []
        for marked in page:
            keys = UserKeys.of_digest(marked.member)
            commands += [("GET", keys.user), ("HGET", keys.queue, "q"), ("HGETALL", keys.due_summaries)]
        replies = await self._client.calls(commands)
        looks: list[Look[DueSession]] = []
        for at in range(0, len(replies), 3):
            user, stored, fields = replies[at : at + 3]
            queue = queue_values.decode(stored, (user or b"").decode())
            user_id, held = queue.user_id, summary_values.held_back(queue)
            rows = summary_values.rows_of(fields) if user_id else []  # of an erased user nothing is left
            rows = await self._without_empty(user_id, rows, held, until=now - idle_seconds)
            due = summary_values.due_of(rows, held, now=now, idle_seconds=idle_seconds)
            place = summary_values.place_of(rows, held, now=now, idle_seconds=idle_seconds)
            looks.append(Look(None if due is None else await self._due_session(user_id, due), place))
        return looks

    async def _without_empty(
        self, user_id: str, rows: list[DueRow], held: Collection[str], *, until: float
    ) -> list[DueRow]:
        """The rows of sessions that still have turns; the others are deleted."""
        keys = UserKeys(user_id)
        asked = [row.session_id for row in rows if row.quiet_since <= until and row.session_id not in held]
        exist = await self._client.calls([("EXISTS", keys.session(session_id)) for session_id in asked])
        empty = [session_id for session_id, is_there in zip(asked, exist, strict=True) if not is_there]
        if empty:
            reading = [("EXISTS", keys.session(session_id)) for session_id in empty]
            await self._store.change(user_id, partial(_forget_empty, keys=keys, sessions=empty), reading=reading)
        return [row for row in rows if row.session_id not in empty]

    async def _due_session(self, user_id: str, row: DueRow) -> DueSession:
        keys = UserKeys(user_id)
        head, is_current = await self._client.calls(
            [("HGET", keys.summary_heads, row.session_id), ("HEXISTS", keys.summaries, row.session_id)]
        )
        if head is None or not is_current:
            return DueSession(user_id, row.session_id, row.token, 0, row.attempts.tries, row.token)
        last = summary_values.decode_head(head)
        return DueSession(user_id, row.session_id, row.token, last.version, row.attempts.tries, last.series)


def _put(
    queue: UserQueue,
    replies: Sequence[Reply],
    *,
    keys: UserKeys,
    due: DueSession,
    summary: SessionSummary | None,
    text: bytes | None,
) -> Planned[bool]:
    token, stored_head, is_current = replies
    session = due.session_id
    if token is None or int(token) != due.token:
        return Planned(False)
    commands: list[Command] = [("HDEL", keys.due_summaries, QUIET + session, TOKEN + session, TRIES + session)]
    if summary is None or text is None:
        return Planned(True, commands=commands, sessions=[NeedsNone(session)] if is_current else [])
    assert (summary.user_id, summary.session_id) == (due.user_id, session), "the summary is that of the session"
    if stored_head is not None and not is_current:  # past notes may hold it
        head = summary_values.decode_head(stored_head)
        field = summary_values.withdrawn_field(session, head.series)
        commands += [("HSET", keys.withdrawn_summaries, field, head.version)]
    commands += [
        ("HSET", keys.summaries, session, text),
        ("HSET", keys.summary_heads, session, summary_values.head_of(summary)),
    ]
    return Planned(True, commands=commands)


def _settle(
    queue: UserQueue, replies: Sequence[Reply], *, keys: UserKeys, withdrawn: Sequence[WithdrawnSummary]
) -> Planned[None]:
    commands: list[Command] = []
    for one, head, text, earlier in zip(withdrawn, *replies, strict=True):
        if earlier is not None:
            field = summary_values.withdrawn_field(one.session_id, one.series)
            commands += [("HDEL", keys.withdrawn_summaries, field)]
        if head is not None and text is None and summary_values.decode_head(head).series == one.series:
            commands += [("HDEL", keys.summary_heads, one.session_id)]
    return Planned(None, commands=commands)


def _forget_empty(
    queue: UserQueue, replies: Sequence[Reply], *, keys: UserKeys, sessions: Sequence[str]
) -> Planned[None]:
    fields: list[str] = []
    for session, is_there in zip(sessions, replies, strict=True):
        if not is_there:
            fields += [QUIET + session, TOKEN + session, TRIES + session]
    return Planned(None, commands=[("HDEL", keys.due_summaries, *fields)] if fields else [])
