"""The tables of turn log, user ledger, note book, receipts, uses, rounds, model traits, exams, chains, messages,
conversation trees, profiles, compacted states, recording times and summaries of sessions: one file.

This module only names tables and creates them; it never reads or writes a row of them.

How a turn is kept. `seq` is the order of opening and the only order that learning knows; `said_at` is the turn's own
time, which for imported history lies in the past, while `opened_at` and `finished_at` say when it reached *us*.
`status` is how the reply ended (`model.TurnStatus`). `stage` is where it stands on its way to the memories:

    open ─► ready ─► window ─► learnt            nothing: failed or aborted, there is nothing to learn
                        └────► dropped           withdrawn: its scope was deleted before it was learnt
                                                 abandoned: on a branch that the client left; it can be resumed

A ready turn is looked at once: `worth` says what a look found, NULL that nobody has looked yet. A session is urgent up
to the turn `urgent_seq`: whatever of it is ready by then is due now. Up to the turn `asked_seq` it holds something that
somebody asks of memory, as does a window that `is_asked`. `is_order`: a turn asks to forget something, and
`order_claims` are the claims that say so, for whoever learns something older late must take a request as it was read
then; a BLOB that is empty where nobody kept them.

One row holds one exchange, and the conversation record is derived from it without another column: conversation_id is
`session_id`; each of `messages` is an input from the user (`user_id`) to the assistant (`agent_id`, or `model` where no
agent was named) at `said_at`; `answer` is the output of the assistant to the user at `answered_at`; `trace_id` joins
both to the request. A message without a role was deleted. Tool traffic of a turn, and messages that the proxy does not
see, are rows of the table `messages`.
What a client chose freely (texts, model, trace) is a BLOB of UTF-8 in which lone surrogates survive.
"""

from __future__ import annotations

import sqlite3

from memory.adapters.sql.erasure_tables import ERASURE_TABLES
from memory.adapters.sql.idempotency_tables import IDEMPOTENCY_TABLES
from memory.adapters.sql.project_tables import PROJECT_TABLES
from memory.adapters.sql.recording_schema import RECORDING_TABLES
from memory.adapters.sql.summary_tables import SUMMARY_TABLES
from memory.errors import BadSetting

APPLICATION_ID = 0x6D70_7478  # "mptx": tells our file from any other SQLite file
VERSION = 3  # of the tables
SQLITE_OLDEST = (3, 35, 0)  # upsert and partial indexes as used here; Python 3.11 usually brings a newer one

TABLES = (
    """
    CREATE TABLE turns (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        user_id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        trace_id BLOB NOT NULL,
        receipt_id BLOB NOT NULL,
        model BLOB NOT NULL,
        said_at REAL NOT NULL,
        opened_at REAL NOT NULL,
        finished_at REAL,
        answered_at REAL,
        status TEXT NOT NULL,
        stage TEXT NOT NULL,
        owner TEXT NOT NULL,
        window_id TEXT,
        messages BLOB NOT NULL,
        answer BLOB NOT NULL,
        worth REAL,
        is_explicit INTEGER NOT NULL DEFAULT 0,
        is_order INTEGER NOT NULL DEFAULT 0,
        order_claims BLOB NOT NULL DEFAULT x''
    )
    """,
    "CREATE INDEX turns_of_user ON turns (user_id, seq)",
    "CREATE INDEX turns_opened ON turns (owner) WHERE status = 'opened'",
    "CREATE INDEX turns_in_window ON turns (window_id, seq) WHERE stage = 'window'",
    # One small index for all that asks what a user still has to learn; learnt turns leave it.
    """
    CREATE INDEX turns_unlearnt ON turns (user_id, session_id, stage, seq)
    WHERE stage IN ('open', 'ready', 'window')
    """,
    "CREATE INDEX turns_unexamined ON turns (seq) WHERE stage = 'ready' AND worth IS NULL",
    "CREATE INDEX turns_of_session ON turns (user_id, session_id, seq)",  # what was said right before a window
    "CREATE INDEX turns_with_orders ON turns (user_id, seq) WHERE is_order = 1",
    # The sessions that have ready turns, so that asking for due work never scans turns.
    """
    CREATE TABLE ready_sessions (
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        first_seq INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        first_finished_at REAL NOT NULL,
        last_finished_at REAL NOT NULL,
        bytes INTEGER NOT NULL DEFAULT 0,
        urgent_seq INTEGER NOT NULL DEFAULT 0,
        asked_seq INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (user_id, session_id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX ready_sessions_in_order ON ready_sessions (first_seq)",
    "CREATE INDEX ready_sessions_urgent ON ready_sessions (first_seq) WHERE first_seq <= urgent_seq",
    # state: leased (due_at: when that ends), waiting (due_at: when to try again), dead, shed. Learnt windows are
    # deleted. `outages`: attempts that ended, one after the other, in an outage of a part, and are not among `attempt`.
    """
    CREATE TABLE windows (
        id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        first_seq INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        first_finished_at REAL NOT NULL,
        state TEXT NOT NULL,
        due_at REAL NOT NULL,
        attempt INTEGER NOT NULL,
        token TEXT,
        owner TEXT,
        plan BLOB,
        reason TEXT NOT NULL,
        buried_at REAL,
        outages INTEGER NOT NULL DEFAULT 0,
        outage_since REAL,
        is_asked INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
    """,
    "CREATE INDEX windows_of_user ON windows (user_id, state, session_id)",
    "CREATE INDEX windows_in_order ON windows (state, first_seq)",
    "CREATE UNIQUE INDEX windows_by_token ON windows (token) WHERE token IS NOT NULL",
    # In an outage thousands wait for their time, and who looks for work twenty times a second must not read them all.
    "CREATE INDEX windows_by_due ON windows (state, due_at)",
    # The ledger. `known_since`: changes after that revision are all in `changes`; before it, they are not.
    """
    CREATE TABLE users (
        user_id TEXT PRIMARY KEY,
        revision INTEGER NOT NULL,
        known_since INTEGER NOT NULL,
        lock_token TEXT,
        lock_owner TEXT,
        lock_expires_at REAL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX users_locked ON users (lock_expires_at) WHERE lock_token IS NOT NULL",
    """
    CREATE TABLE changes (
        user_id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        memory_id TEXT NOT NULL,
        PRIMARY KEY (user_id, revision, memory_id)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE forgotten (
        user_id TEXT NOT NULL,
        memory_id TEXT NOT NULL,
        PRIMARY KEY (user_id, memory_id)
    ) WITHOUT ROWID
    """,
    # The note book: notes of earlier requests by conversation key, so that a prompt's prefix can stay as it was.
    # `position` and `user_position` count the bytes of all notes so far, and of the user's: the oldest lie lowest.
    """
    CREATE TABLE notes (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        user_position INTEGER NOT NULL,
        key TEXT NOT NULL,
        text TEXT NOT NULL,
        memory_ids TEXT NOT NULL, made_at REAL NOT NULL,
        tokens INTEGER NOT NULL,
        UNIQUE (user_id, key)
    )
    """,
    "CREATE UNIQUE INDEX notes_of_user ON notes (user_id, user_position)",
    # Which memories were dropped from it within the last minute: notes that are on their way must not bring them back.
    """
    CREATE TABLE notes_dropped (
        user_id TEXT NOT NULL,
        memory_id TEXT NOT NULL,
        dropped_at REAL NOT NULL,
        PRIMARY KEY (user_id, memory_id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX notes_dropped_by_age ON notes_dropped (dropped_at)",
    # Receipts, bounded by bytes of all (`position`), by number per user (`ordinal`) and by age.
    """
    CREATE TABLE receipts (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        ordinal INTEGER NOT NULL,
        id TEXT NOT NULL,
        kept_at REAL NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (user_id, id)
    )
    """,
    "CREATE UNIQUE INDEX receipts_of_user ON receipts (user_id, ordinal)",
    "CREATE INDEX receipts_by_age ON receipts (kept_at)",
    """
    CREATE TABLE model_traits (
        model TEXT PRIMARY KEY,
        placement TEXT NOT NULL,
        learnt_at REAL NOT NULL
    ) WITHOUT ROWID
    """,
    # Uses of memories that the store does not have yet (`counted`), and the sum that it is just being given (`total`).
    """
    CREATE TABLE uses (
        user_id TEXT NOT NULL,
        memory_id TEXT NOT NULL,
        counted INTEGER NOT NULL,
        total INTEGER,
        used_at REAL NOT NULL,
        PRIMARY KEY (user_id, memory_id)
    ) WITHOUT ROWID
    """,
    # When each user's memories were last looked after; `begun_at` while somebody is at it.
    """
    CREATE TABLE rounds (
        user_id TEXT PRIMARY KEY,
        begun_at REAL,
        ended_at REAL NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX rounds_under_way ON rounds (begun_at) WHERE begun_at IS NOT NULL",
    "CREATE INDEX rounds_in_order ON rounds (ended_at, user_id)",
    # What the exam of a chat model that is to read came to.
    """
    CREATE TABLE exam_results (
        model TEXT NOT NULL,
        server TEXT NOT NULL,
        version TEXT NOT NULL,
        passed INTEGER NOT NULL,
        score REAL NOT NULL,
        failures TEXT NOT NULL,
        sat_at REAL NOT NULL,
        PRIMARY KEY (model, server, version)
    ) WITHOUT ROWID
    """,
    # Exchanges that later requests may continue, by user and name; the newest have the highest position.
    """
    CREATE TABLE chains (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        name TEXT NOT NULL,
        session_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        note_keys BLOB NOT NULL,
        kept_at REAL NOT NULL,
        UNIQUE (user_id, name)
    )
    """,
    "CREATE UNIQUE INDEX chains_of_user ON chains (user_id, position)",
    "CREATE INDEX chains_by_age ON chains (kept_at)",
    "CREATE INDEX turns_by_age ON turns (opened_at)",
    # Messages of the conversation record that are not part of a row of `turns`: tool traffic (`turn_id`, and `seq` of
    # that turn), and messages added by the application (`turn_id` empty). `at` is a message's own time, `added_at` when
    # it reached us.
    """
    CREATE TABLE messages (
        position INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        at REAL NOT NULL,
        added_at REAL NOT NULL,
        seq INTEGER NOT NULL,
        ordinal INTEGER NOT NULL,
        trace_id BLOB NOT NULL,
        source_type TEXT NOT NULL,
        source BLOB NOT NULL,
        target_type TEXT NOT NULL,
        target BLOB NOT NULL,
        direction TEXT NOT NULL,
        visibility TEXT NOT NULL,
        content BLOB NOT NULL,
        UNIQUE (user_id, id)
    )
    """,
    "CREATE INDEX messages_of_conversation ON messages (user_id, conversation_id)",
    "CREATE INDEX messages_of_turn ON messages (turn_id) WHERE turn_id != ''",
    "CREATE INDEX messages_by_age ON messages (added_at)",
    # Positions of turns in conversations. A tree has one active path; `is_seen`: its beginning was observed, not only
    # sent again. `is_left_out`: not a turn, but a key of which nothing may be recorded. `reached`: how far an abandoned
    # turn was learnt ("", "window", "learnt"). `is_settled` 0: the memories do not show `is_abandoned` yet.
    # `is_concurrent`: active beside the path, because it was being answered when its sibling came.
    """
    CREATE TABLE turn_branches (
        position INTEGER PRIMARY KEY,
        turn_id TEXT NOT NULL UNIQUE,
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        key TEXT NOT NULL,
        tree_id TEXT NOT NULL,
        parent_id TEXT NOT NULL,
        is_seen INTEGER NOT NULL,
        is_left_out INTEGER NOT NULL DEFAULT 0,
        is_abandoned INTEGER NOT NULL DEFAULT 0,
        is_concurrent INTEGER NOT NULL DEFAULT 0,
        reached TEXT NOT NULL DEFAULT '',
        is_settled INTEGER NOT NULL DEFAULT 1
    )
    """,
    "CREATE INDEX turn_branches_by_key ON turn_branches (user_id, key)",
    "CREATE INDEX turn_branches_of_user ON turn_branches (user_id, position)",
    "CREATE INDEX turn_branches_of_tree ON turn_branches (tree_id, is_abandoned, position)",
    "CREATE INDEX turn_branches_by_parent ON turn_branches (parent_id) WHERE parent_id != ''",
    "CREATE INDEX turn_branches_unsettled ON turn_branches (user_id) WHERE is_settled = 0",
    "CREATE INDEX turn_branches_concurrent ON turn_branches (tree_id) WHERE is_concurrent",
    # Hashes of users who erased their positions: what their conversations held is not filled in again.
    "CREATE TABLE erased_conversations (user_hash TEXT PRIMARY KEY) WITHOUT ROWID",
    # A profile per user (no project) and per project of a user; `pinned`, `lines` and `prose` are JSON. `prose` is NULL
    # until a model has been asked for it.
    """
    CREATE TABLE profiles (
        user_id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        version INTEGER NOT NULL,
        pinned BLOB NOT NULL,
        lines BLOB NOT NULL,
        is_enabled INTEGER NOT NULL,
        updated_at REAL NOT NULL,
        prose BLOB,
        PRIMARY KEY (user_id, project_id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX profiles_unwritten ON profiles (updated_at) WHERE prose IS NULL",
    # Users whose profiles wait to be built, whoever wrote their memories.
    """
    CREATE TABLE stale_profiles (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL UNIQUE
    )
    """,
    """
    CREATE TRIGGER profiles_become_stale AFTER UPDATE OF revision ON users
    WHEN new.revision % 2 = 0 AND new.revision > old.revision AND NOT EXISTS (SELECT 1 FROM profiles_switched_off)
    BEGIN
        INSERT OR IGNORE INTO stale_profiles (user_id) SELECT new.user_id WHERE new.user_id NOT LIKE ' %';
    END
    """,
    # States of long conversations, by user and conversation key; the newest have the highest position.
    """
    CREATE TABLE compacted_states (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        key TEXT NOT NULL,
        state BLOB NOT NULL,
        kept_at REAL NOT NULL,
        UNIQUE (user_id, key)
    )
    """,
    "CREATE UNIQUE INDEX compacted_states_of_user ON compacted_states (user_id, position)",
    "CREATE INDEX compacted_states_by_age ON compacted_states (kept_at)",
    # When a user's states were dropped: those that are being made then are not stored.
    """
    CREATE TABLE compacted_states_dropped (
        user_id TEXT PRIMARY KEY,
        dropped_at REAL NOT NULL
    ) WITHOUT ROWID
    """,
    *RECORDING_TABLES,
    # The revision of a user's memories from which their profiles were built.
    """
    CREATE TABLE profiles_built (
        user_id TEXT PRIMARY KEY,
        revision INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    # One row while the deployment builds no profiles: users are not queued then.
    "CREATE TABLE profiles_switched_off (is_off INTEGER PRIMARY KEY)",
    *(*SUMMARY_TABLES, *IDEMPOTENCY_TABLES, *ERASURE_TABLES, *PROJECT_TABLES),
)


def create_tables(connection: sqlite3.Connection, path: str) -> None:
    """In an empty file, in one transaction. Raises `BadSetting` for a file that is not ours, or of another version."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_empty(connection, path):
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _is_empty(connection: sqlite3.Connection, path: str) -> bool:
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        return True
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application != APPLICATION_ID:
        raise BadSetting(f"{path} is a database of something else: name another file for the turn log")
    if version != VERSION:
        raise BadSetting(
            f"{path} has version {version}, this memproxy reads version {VERSION}: "
            "start the memproxy that wrote it again, or name another file"
        )
    return False
