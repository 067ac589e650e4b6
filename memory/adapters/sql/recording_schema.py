"""The tables by which turns are recorded once: digests of what users said, and times of recording. Part of `schema`."""

from __future__ import annotations

RECORDING_TABLES = (
    # Digests of what users said, by which an exchange is recognised in any session, project or agent. They outlive the
    # turn, so that a deleted one is not recorded again. Without a turn: it must not be recorded; `answer` is then the
    # digest of the answer, "" if that is not known, as with what was left out before it was answered.
    """
    CREATE TABLE known_exchanges (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        words TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        answer TEXT NOT NULL
    )
    """,
    "CREATE INDEX known_exchanges_by_words ON known_exchanges (words, user_id)",
    "CREATE INDEX known_exchanges_of_user ON known_exchanges (user_id, position)",
    # When each recording process last said that it records; owner "": those that have ended.
    "CREATE TABLE recorders (owner TEXT PRIMARY KEY, last_at REAL NOT NULL) WITHOUT ROWID",
    # Times in which turns may have been missed. `is_loss`: at least one was, since it could not be written.
    """
    CREATE TABLE recording_gaps (
        position INTEGER PRIMARY KEY,
        began_at REAL NOT NULL,
        ended_at REAL NOT NULL,
        is_loss INTEGER NOT NULL
    )
    """,
    "CREATE INDEX recording_gaps_by_end ON recording_gaps (ended_at)",
    # Turns whose words left the record, however they did, while the store may still hold rows with their raw words.
    """
    CREATE TABLE removed_words (
        user_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        PRIMARY KEY (user_id, turn_id)
    ) WITHOUT ROWID
    """,
    """
    CREATE TRIGGER words_are_deleted AFTER DELETE ON turns WHEN old.stage != 'nothing'
    BEGIN
        INSERT OR IGNORE INTO removed_words (user_id, turn_id) VALUES (old.user_id, old.id);
    END
    """,
    """
    CREATE TRIGGER words_are_rewritten AFTER UPDATE OF messages ON turns WHEN old.stage != 'nothing'
    BEGIN
        INSERT OR IGNORE INTO removed_words (user_id, turn_id) VALUES (old.user_id, old.id);
    END
    """,
    # The key of the digests in `known_exchanges`, random, made with the file.
    "CREATE TABLE digest_keys (key BLOB NOT NULL)",
    "INSERT INTO digest_keys VALUES (randomblob(32))",
)
