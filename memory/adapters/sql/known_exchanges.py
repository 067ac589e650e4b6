"""Recognises an exchange that a client sends again by its words, in any session, project or agent. On a connection.

Distinctive words are enough for the user's own turns; others need the same answer. A digest outlives its turn: what was
deleted, or must not be recorded, stays known. Records of other users decide nothing: nobody learns what another said.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.adapters.sql.statements import Connection, statements, user_hash
from memory.adapters.sql.turns_rows import to_text
from memory.model import Scope, SentExchange, Turn
from memory.model.exchanges import digest_of, folded, is_distinctive, words_of

SQL = statements("known_exchanges")

LOOKS_MAX = 50  # exchanges with the same words that are compared
DIGESTS_MAX = 50_000  # of what one user said; about 150 bytes each
PRUNED_EVERY = 256  # digests, or positions


def remember(connection: Connection, turn: Turn) -> None:
    words = words_of(turn.messages)
    if words:
        _insert(connection, turn.scope.user_id, _digest(connection, words), turn_id=turn.id, answer="")


def was_recorded(connection: Connection, turn: Turn) -> bool:
    """Whether this very turn is, or was, in the record of its user."""
    words = words_of(turn.messages)
    digest = _digest(connection, words)
    return bool(words) and SQL.recorded_turn.exists(connection, digest=digest, user_id=turn.scope.user_id, id=turn.id)


def leave_out(connection: Connection, user_id: str, exchange: SentExchange) -> None:
    """This user's record must not hold it. Without a key it is recognised by its words alone: only distinctive ones."""
    words = words_of(exchange.said)
    if not words or not (exchange.key or is_distinctive(words)):
        return
    answer = _digest(connection, exchange.answer) if exchange.answer else ""
    digest = _digest(connection, words)
    if not SQL.left_out_exchange.exists(connection, digest=digest, user_id=user_id, answer=answer):
        _insert(connection, user_id, digest, turn_id="", answer=answer)


def _insert(connection: Connection, user_id: str, digest: str, *, turn_id: str, answer: str) -> None:
    kept = SQL.insert_exchange(connection, user_id=user_id, digest=digest, turn_id=turn_id, answer=answer)
    if kept.fetchone()[0] % PRUNED_EVERY == 0:
        SQL.delete_beyond_limit(connection, user_id=user_id, digests_max=DIGESTS_MAX)


def is_known(connection: Connection, user_id: str, exchange: SentExchange) -> bool:
    """Whether it is recorded, was deleted, or must not be recorded."""
    words = words_of(exchange.said)
    digest, is_enough = _digest(connection, words), is_distinctive(words)
    own = SQL.exchanges_of_user(connection, digest=digest, user_id=user_id, looks_max=LOOKS_MAX).fetchall()
    if any(not row[0] and _has_answer(connection, row, exchange.answer) for row in own):
        return True
    matching = sum(is_enough or _has_answer(connection, row, exchange.answer) for row in own)
    return matching >= min(exchange.occurrence, LOOKS_MAX)


def without_position(connection: Connection, scope: Scope, exchange: SentExchange) -> str | None:
    """The latest turn of that session with these words that has no position in a conversation."""
    digest, user_id = _digest(connection, words_of(exchange.said)), scope.user_id
    return SQL.turn_without_position.value(connection, str, digest=digest, user_id=user_id, session_id=scope.session_id)


def _has_answer(connection: Connection, row: Sequence[object], answer: str) -> bool:
    """Whether the answer is the same, or not known. `row`: the turn's id, a digest, and the turn's own answer."""
    turn_id, digest, stored = row
    if not turn_id:
        return digest in ("", _digest(connection, answer))
    recorded = folded(to_text(stored)) if isinstance(stored, bytes) else ""
    return recorded in ("", folded(answer))


def _digest(connection: Connection, text: str) -> str:
    """With the key of this file: nobody compares it with a guess who has not the whole file."""
    (key,) = SQL.digest_key(connection).fetchone()
    return digest_of(text, key=key)


def erase(connection: Connection, user_id: str) -> None:
    """Forget what the user said and where, and that alone: from now on no conversation is filled in from its
    beginning.
    """
    SQL.erase_conversations(connection, user_hash=user_hash(user_id))
    SQL.delete_positions(connection, user_id=user_id)
    SQL.delete_exchanges(connection, user_id=user_id)
