"""Summaries of sessions as values, and which session of a user is due: pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from memory.adapters.redis.queue_values import LIVE, UserQueue
from memory.adapters.redis.session_events import QUIET, TOKEN, TRIES
from memory.adapters.turn_texts import to_bytes, to_text
from memory.model import SessionSummary, StoredSummary, Vector, WithdrawnSummary

HELD_BACK_SECONDS = 30.0  # until a session is looked at again whose turns are still to be learnt


class SummaryValue(msgspec.Struct, frozen=True):
    """A current summary. Title and text are UTF-8 with lone surrogates; the vector has 16 bits a number."""

    user_id: str
    session_id: str
    version: int
    title: bytes
    text: bytes
    first_at: float
    last_at: float
    turn_ids: tuple[str, ...]
    project_id: str
    agent_id: str
    made_by: str
    made_at: float
    series: int
    vector: bytes
    origin: str


class SummaryHead(msgspec.Struct, frozen=True):
    """What stays of a summary that is gone, for notes may hold it."""

    series: int
    version: int
    id: str
    last_at: float


class Attempts(msgspec.Struct, frozen=True):
    not_before: float = 0.0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class DueRow:
    """A session that has changed since its summary. `quiet_since`: 0 if somebody has ended it."""

    session_id: str
    quiet_since: float
    token: int
    attempts: Attempts


def rows_of(fields: Mapping[bytes, bytes]) -> list[DueRow]:
    """Of the whole hash."""
    rows: list[DueRow] = []
    for name, quiet_since in fields.items():
        if name.startswith(QUIET.encode()):
            session = name[len(QUIET) :]
            token, tries = fields.get(TOKEN.encode() + session, b"0"), fields.get(TRIES.encode() + session)
            rows.append(DueRow(session.decode(), float(quiet_since), int(token), decode_attempts(tries)))
    return rows


def held_back(queue: UserQueue) -> set[str]:
    """Sessions with turns still to be answered or learnt."""
    live = {window.id for window in queue.windows if window.state in LIVE}
    return {
        turn.session_id
        for turn in queue.turns
        if turn.stage in ("open", "ready") or (turn.stage == "window" and turn.window_id in live)
    }


def due_of(rows: Collection[DueRow], held: Collection[str], *, now: float, idle_seconds: float) -> DueRow | None:
    """The longest waiting one."""
    due = [row for row in rows if row.session_id not in held and _due_at(row, idle_seconds) <= now - idle_seconds]
    return min(due, key=lambda row: (row.quiet_since, row.session_id), default=None)


def place_of(rows: Collection[DueRow], held: Collection[str], *, now: float, idle_seconds: float) -> float | None:
    """How long ago a session has to have been idle to be worth a look at this user; None without any."""
    later = now - idle_seconds + HELD_BACK_SECONDS
    return min((later if row.session_id in held else _due_at(row, idle_seconds) for row in rows), default=None)


def _due_at(row: DueRow, idle_seconds: float) -> float:
    return max(row.quiet_since, row.attempts.not_before - idle_seconds)


def encode_summary(summary: SessionSummary, vector: Vector | None, origin: str) -> bytes:
    stored = SummaryValue(
        summary.user_id,
        summary.session_id,
        summary.version,
        to_bytes(summary.title),
        to_bytes(summary.text),
        summary.first_at,
        summary.last_at,
        summary.turn_ids,
        summary.project_id,
        summary.agent_id,
        summary.made_by,
        summary.made_at,
        summary.series,
        b"" if vector is None else np.asarray(vector, dtype=np.float16).tobytes(),
        origin,
    )
    return _ENCODER.encode(stored)


def decode_summary(stored: bytes, *, origin: str = "") -> StoredSummary:
    """Without the vector if another model made it."""
    one = _TEXTS.decode(stored)
    summary = SessionSummary(
        one.user_id,
        one.session_id,
        one.version,
        to_text(one.title),
        to_text(one.text),
        one.first_at,
        one.last_at,
        one.turn_ids,
        one.project_id,
        one.agent_id,
        one.made_by,
        one.made_at,
        one.series,
    )
    is_ours = one.origin == origin and one.vector
    return StoredSummary(summary, np.frombuffer(one.vector, dtype=np.float16).astype(np.float32) if is_ours else None)


def head_of(summary: SessionSummary) -> bytes:
    return _ENCODER.encode(SummaryHead(summary.series, summary.version, summary.id, summary.last_at))


def decode_head(stored: bytes) -> SummaryHead:
    return _HEADS.decode(stored)


def encode_attempts(attempts: Attempts) -> bytes:
    return _ENCODER.encode(attempts)


def decode_attempts(stored: bytes | None) -> Attempts:
    return _ATTEMPTS.decode(stored) if stored else Attempts()


def withdrawn_field(session_id: str, series: int) -> str:
    return f"{series}:{session_id}"


def withdrawn_of(
    user_id: str, heads: Mapping[bytes, bytes], current: Collection[bytes], earlier: Mapping[bytes, bytes]
) -> list[WithdrawnSummary]:
    """Last ones that are gone, and `earlier` ones, whose sessions have another by now."""
    found: list[WithdrawnSummary] = []
    for session, stored in heads.items():
        if session not in current:
            head = decode_head(stored)
            found.append(WithdrawnSummary(user_id, session.decode(), head.series, head.version))
    for field, version in earlier.items():
        series, _, session_id = field.decode().partition(":")
        found.append(WithdrawnSummary(user_id, session_id, int(series), int(version)))
    return found


_ENCODER = msgspec.msgpack.Encoder()
_TEXTS = msgspec.msgpack.Decoder(SummaryValue)
_HEADS = msgspec.msgpack.Decoder(SummaryHead)
_ATTEMPTS = msgspec.msgpack.Decoder(Attempts)
