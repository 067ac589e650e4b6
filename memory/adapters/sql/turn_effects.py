"""What follows when turns change: sessions become due for a summary, summaries are withdrawn, raw words are to go.

Whoever changes turns calls the function for it in the same transaction. A session is due when a turn of it has ended,
and when one was learnt late. Its summary is gone as soon as a turn of it is deleted, reworded, withdrawn, abandoned,
resumed or left out, and the session is due again. Jobs on a connection.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence

from memory.adapters.sql.database import OnDatabase, reads, writing
from memory.adapters.sql.statements import Connection, listed, statements

SQL = statements("turn_effects")
TOKEN_BITS = 62  # fits a signed column
NOTHING_TO_LEARN = "nothing"  # the stage of failed and aborted turns, of whose words nothing was stored


def turn_ended(connection: Connection, user_id: str, session_id: str, *, at: float) -> None:
    SQL.session_goes_on(connection, user_id=user_id, session_id=session_id, token=_token(), at=at)


def turns_learnt(connection: Connection, user_id: str, session_id: str, *, finished_at: float) -> None:
    """They belong to the next summary."""
    SQL.session_is_due_with(connection, user_id=user_id, session_id=session_id, token=_token(), at=finished_at)


def sessions_changed(connection: Connection, user_id: str, session_ids: Collection[str]) -> None:
    withdraw_summaries(connection, user_id, session_ids)
    SQL.session_is_due_again.many(
        connection, [{"user_id": user_id, "session_id": session, "token": _token()} for session in sorted(session_ids)]
    )


def withdraw_summaries(connection: Connection, user_id: str, session_ids: Collection[str]) -> None:
    """Past notes may hold them, so that they are written down."""
    if session_ids:
        sessions = listed(sorted(session_ids))
        SQL.note_withdrawn(connection, user_id=user_id, session_ids=sessions)
        SQL.delete_summaries(connection, user_id=user_id, session_ids=sessions)


def turns_deleted(connection: Connection, user_id: str, deleted: Sequence[tuple[str, str, str]]) -> None:
    """`deleted`: id, session id and stage of each."""
    if not deleted:
        return
    words_removed(connection, user_id, [turn_id for turn_id, _, stage in deleted if stage != NOTHING_TO_LEARN])
    session_ids = {session_id for _, session_id, _ in deleted}
    sessions_changed(connection, user_id, session_ids)
    SQL.forget_left_out(connection, turn_ids=listed(turn_id for turn_id, *_ in deleted))
    SQL.forget_empty_sessions(connection, user_id=user_id, session_ids=listed(sorted(session_ids)))


def words_removed(connection: Connection, user_id: str, turn_ids: Collection[str]) -> None:
    """The store may hold rows with their raw words."""
    if turn_ids:
        SQL.note_removed_words(connection, user_id=user_id, turn_ids=listed(sorted(turn_ids)))


def _token() -> int:
    return secrets.randbits(TOKEN_BITS)


def forget_removed(connection: Connection, user_id: str, turn_ids: Collection[str]) -> None:
    SQL.delete_removed(connection, user_id=user_id, turn_ids=listed(turn_ids))


class SqlRemovedWords(OnDatabase):
    @reads
    def next_user(self, connection: Connection, *, without: Collection[str] = ()) -> str | None:
        return SQL.user_with_removed.value(connection, str, without=listed(sorted(without)))

    @reads
    def turn_ids(self, connection: Connection, user_id: str, *, limit: int) -> list[str]:
        return SQL.removed_of_user.column(connection, user_id=user_id, limit=limit)

    settle = writing(forget_removed)
