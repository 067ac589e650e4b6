"""The tables of summaries of sessions, and the triggers by which changes of turns withdraw them: part of `schema`.

A session is due when a turn of it has ended, and when one was learnt late. A summary is gone as soon as a turn of its
session is deleted, reworded, withdrawn, abandoned, resumed or left out, whoever does it, and the session is due again.
No statement in a trigger may rely on a conflict clause: that of the outer statement would replace it.
"""

from __future__ import annotations

_SESSION_GOES_ON = """
    BEGIN
        DELETE FROM summaries_due WHERE user_id = new.user_id AND session_id = new.session_id;
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        VALUES (new.user_id, new.session_id, random(), new.finished_at);
    END
"""
_FORGET_EMPTY_SESSION = """
        DELETE FROM turns_in_no_summary WHERE turn_id = old.id;
        DELETE FROM summaries_due WHERE user_id = old.user_id AND session_id = old.session_id AND NOT EXISTS (
            SELECT 1 FROM turns WHERE user_id = old.user_id AND session_id = old.session_id
        );
"""


def _session_changes(row: str, then: str = "") -> str:
    """Body of a trigger: a turn of the session has changed, so its summary is gone and due again.

    A session that was not due is over, so that its next summary need not wait.
    """
    of_session = f"user_id = {row}.user_id AND session_id = {row}.session_id"
    return f"""
    BEGIN
        DELETE FROM session_summaries WHERE {of_session};
        UPDATE summaries_due SET token = random(), not_before = 0, tries = 0 WHERE {of_session};
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        SELECT {row}.user_id, {row}.session_id, random(), 0
        WHERE NOT EXISTS (SELECT 1 FROM summaries_due WHERE {of_session});
        {then}
    END
    """  # noqa: S608  # our own constants


SUMMARY_TABLES = (
    # Summaries of sessions, one each. `series`: the same until one is withdrawn. `vector`: 16 bits a number, by the
    # model that `origin` names.
    """
    CREATE TABLE session_summaries (
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        version INTEGER NOT NULL,
        title BLOB NOT NULL,
        text BLOB NOT NULL,
        first_at REAL NOT NULL,
        last_at REAL NOT NULL,
        turn_ids TEXT NOT NULL,
        project_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        made_by TEXT NOT NULL,
        made_at REAL NOT NULL,
        series INTEGER NOT NULL,
        id TEXT NOT NULL,
        vector BLOB NOT NULL,
        origin TEXT NOT NULL,
        PRIMARY KEY (user_id, session_id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX session_summaries_by_time ON session_summaries (user_id, last_at)",
    "CREATE UNIQUE INDEX session_summaries_by_id ON session_summaries (user_id, id)",
    # Sessions that have changed since their summary: at most one row per session of the record. `token` changes with
    # the session; `quiet_since`: the end of its last turn, 0 if somebody has ended it.
    """
    CREATE TABLE summaries_due (
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        token INTEGER NOT NULL,
        quiet_since REAL NOT NULL,
        not_before REAL NOT NULL DEFAULT 0,
        tries INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (user_id, session_id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX summaries_due_in_order ON summaries_due (quiet_since)",
    # Turns that say what was forgotten or withheld, or that asked for that.
    """
    CREATE TABLE turns_in_no_summary (
        turn_id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX turns_in_no_summary_of_user ON turns_in_no_summary (user_id)",
    # Summaries that are gone, with all versions of their series, and may still stand in past notes.
    """
    CREATE TABLE summaries_withdrawn (
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        series INTEGER NOT NULL,
        version INTEGER NOT NULL,
        PRIMARY KEY (user_id, session_id, series)
    ) WITHOUT ROWID
    """,
    """
    CREATE TRIGGER summaries_are_withdrawn AFTER DELETE ON session_summaries
    BEGIN
        INSERT INTO summaries_withdrawn (user_id, session_id, series, version)
        SELECT old.user_id, old.session_id, old.series, old.version WHERE NOT EXISTS (
            SELECT 1 FROM summaries_withdrawn
            WHERE user_id = old.user_id AND session_id = old.session_id AND series = old.series
        );
    END
    """,
    f"""
    CREATE TRIGGER sessions_go_on AFTER UPDATE OF finished_at ON turns
    WHEN new.finished_at IS NOT NULL AND new.finished_at IS NOT old.finished_at
    {_SESSION_GOES_ON}
    """,
    f"""
    CREATE TRIGGER sessions_go_on_at_once AFTER INSERT ON turns WHEN new.finished_at IS NOT NULL
    {_SESSION_GOES_ON}
    """,
    f"""
    CREATE TRIGGER turns_are_reworded AFTER UPDATE OF messages, answer ON turns
    WHEN old.finished_at IS NOT NULL AND (new.messages IS NOT old.messages OR length(old.answer) > 0)
    {_session_changes("new")}
    """,
    f"""
    CREATE TRIGGER turns_leave_or_return AFTER UPDATE OF stage ON turns
    WHEN new.stage != old.stage AND (new.stage IN ('abandoned', 'withdrawn') OR old.stage = 'abandoned')
    {_session_changes("new")}
    """,
    """
    CREATE TRIGGER turns_are_learnt_late AFTER UPDATE OF stage ON turns
    WHEN new.stage = 'learnt' AND old.stage != 'learnt'
    BEGIN
        UPDATE summaries_due SET token = random() WHERE user_id = new.user_id AND session_id = new.session_id;
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        SELECT new.user_id, new.session_id, random(), new.finished_at WHERE NOT EXISTS (
            SELECT 1 FROM summaries_due WHERE user_id = new.user_id AND session_id = new.session_id
        );
    END
    """,
    f"""
    CREATE TRIGGER turns_are_deleted AFTER DELETE ON turns
    {_session_changes("old", _FORGET_EMPTY_SESSION)}
    """,
    f"""
    CREATE TRIGGER turns_are_left_out AFTER INSERT ON turns_in_no_summary
    {_session_changes("new")}
    """,  # our own constants
)


__all__ = ["SUMMARY_TABLES"]
