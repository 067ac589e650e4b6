BEGIN TRANSACTION;
CREATE TABLE barriers (
        name TEXT PRIMARY KEY,
        token TEXT NOT NULL,
        owner TEXT NOT NULL,
        until REAL NOT NULL
    ) WITHOUT ROWID
    ;
CREATE TABLE chains (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        name TEXT NOT NULL,
        session_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        note_keys BLOB NOT NULL,
        kept_at REAL NOT NULL,
        UNIQUE (user_id, name)
    );
CREATE TABLE changes (
        user_id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        memory_id TEXT NOT NULL,
        PRIMARY KEY (user_id, revision, memory_id)
    ) WITHOUT ROWID
    ;
CREATE TABLE compacted_states (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        key TEXT NOT NULL,
        state BLOB NOT NULL,
        kept_at REAL NOT NULL,
        UNIQUE (user_id, key)
    );
CREATE TABLE compacted_states_dropped (
        user_id TEXT PRIMARY KEY,
        dropped_at REAL NOT NULL
    ) WITHOUT ROWID
    ;
CREATE TABLE digest_keys (key BLOB NOT NULL);
INSERT INTO "digest_keys" VALUES(X'D40882AFA22107AF5646633F79B4B7F1DDE1EBA2DFA443B1DC0630701A9AB221');
CREATE TABLE erased_conversations (user_hash TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE erased_users (
        user_hash TEXT PRIMARY KEY,
        erased_at REAL NOT NULL,
        times INTEGER NOT NULL,
        revision INTEGER NOT NULL
    ) WITHOUT ROWID
    ;
CREATE TABLE erasures (
        position INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        user_hash TEXT NOT NULL,
        asked_at REAL NOT NULL,
        deleted_at REAL NOT NULL,
        deleted BLOB NOT NULL,
        rewritten_at REAL,
        scan BLOB
    );
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
    ;
CREATE TABLE forgotten (
        user_id TEXT NOT NULL,
        memory_id TEXT NOT NULL,
        PRIMARY KEY (user_id, memory_id)
    ) WITHOUT ROWID
    ;
CREATE TABLE idempotency_keys (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        key TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        claimed_at REAL NOT NULL,
        answer TEXT,
        UNIQUE (user_id, key)
    );
CREATE TABLE known_exchanges (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        words TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        answer TEXT NOT NULL
    );
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
    );
CREATE TABLE model_traits (
        model TEXT PRIMARY KEY,
        placement TEXT NOT NULL,
        learnt_at REAL NOT NULL
    ) WITHOUT ROWID
    ;
CREATE TABLE notes (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        user_position INTEGER NOT NULL,
        key TEXT NOT NULL,
        text TEXT NOT NULL,
        memory_ids TEXT NOT NULL, made_at REAL NOT NULL,
        tokens INTEGER NOT NULL,
        UNIQUE (user_id, key)
    );
CREATE TABLE notes_dropped (
        user_id TEXT NOT NULL,
        memory_id TEXT NOT NULL,
        dropped_at REAL NOT NULL,
        PRIMARY KEY (user_id, memory_id)
    ) WITHOUT ROWID
    ;
CREATE TABLE opted_out_users (user_hash TEXT PRIMARY KEY, opted_out_at REAL NOT NULL) WITHOUT ROWID;
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
    ;
CREATE TABLE profiles_built (
        user_id TEXT PRIMARY KEY,
        revision INTEGER NOT NULL
    ) WITHOUT ROWID
    ;
CREATE TABLE profiles_switched_off (is_off INTEGER PRIMARY KEY);
CREATE TABLE project_members (
        project_key TEXT NOT NULL,
        user_id TEXT NOT NULL,
        role TEXT NOT NULL,
        joined_at REAL NOT NULL,
        PRIMARY KEY (project_key, user_id)
    ) WITHOUT ROWID
    ;
CREATE TABLE project_memories (
        memory_id TEXT PRIMARY KEY,
        project_key TEXT NOT NULL,
        author_id TEXT NOT NULL,
        visibility TEXT NOT NULL,
        changed_at REAL NOT NULL
    ) WITHOUT ROWID
    ;
CREATE TABLE project_readers (
        project_key TEXT NOT NULL,
        user_id TEXT NOT NULL,
        PRIMARY KEY (project_key, user_id)
    ) WITHOUT ROWID
    ;
CREATE TABLE projects (
        key TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        project_id TEXT NOT NULL,
        created_at REAL NOT NULL,
        UNIQUE (tenant, project_id)
    ) WITHOUT ROWID
    ;
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
    ;
CREATE TABLE receipts (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL,
        ordinal INTEGER NOT NULL,
        id TEXT NOT NULL,
        kept_at REAL NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (user_id, id)
    );
CREATE TABLE recorders (owner TEXT PRIMARY KEY, last_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE recording_gaps (
        position INTEGER PRIMARY KEY,
        began_at REAL NOT NULL,
        ended_at REAL NOT NULL,
        is_loss INTEGER NOT NULL
    );
CREATE TABLE removed_words (
        user_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        PRIMARY KEY (user_id, turn_id)
    ) WITHOUT ROWID
    ;
CREATE TABLE rounds (
        user_id TEXT PRIMARY KEY,
        begun_at REAL,
        ended_at REAL NOT NULL
    ) WITHOUT ROWID
    ;
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
    ;
CREATE TABLE stale_profiles (
        position INTEGER PRIMARY KEY,
        user_id TEXT NOT NULL UNIQUE
    );
CREATE TABLE summaries_due (
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        token INTEGER NOT NULL,
        quiet_since REAL NOT NULL,
        not_before REAL NOT NULL DEFAULT 0,
        tries INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (user_id, session_id)
    ) WITHOUT ROWID
    ;
CREATE TABLE summaries_withdrawn (
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        series INTEGER NOT NULL,
        version INTEGER NOT NULL,
        PRIMARY KEY (user_id, session_id, series)
    ) WITHOUT ROWID
    ;
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
    );
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
    );
CREATE TABLE turns_in_no_summary (
        turn_id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL
    ) WITHOUT ROWID
    ;
CREATE TABLE users (
        user_id TEXT PRIMARY KEY,
        revision INTEGER NOT NULL,
        known_since INTEGER NOT NULL,
        lock_token TEXT,
        lock_owner TEXT,
        lock_expires_at REAL
    ) WITHOUT ROWID
    ;
CREATE TABLE uses (
        user_id TEXT NOT NULL,
        memory_id TEXT NOT NULL,
        counted INTEGER NOT NULL,
        total INTEGER,
        used_at REAL NOT NULL,
        PRIMARY KEY (user_id, memory_id)
    ) WITHOUT ROWID
    ;
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
    ;
CREATE TABLE written_meanwhile (user_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE INDEX turns_of_user ON turns (user_id, seq);
CREATE INDEX turns_opened ON turns (owner) WHERE status = 'opened';
CREATE INDEX turns_in_window ON turns (window_id, seq) WHERE stage = 'window';
CREATE INDEX turns_unlearnt ON turns (user_id, session_id, stage, seq)
    WHERE stage IN ('open', 'ready', 'window')
    ;
CREATE INDEX turns_unexamined ON turns (seq) WHERE stage = 'ready' AND worth IS NULL;
CREATE INDEX turns_of_session ON turns (user_id, session_id, seq);
CREATE INDEX turns_with_orders ON turns (user_id, seq) WHERE is_order = 1;
CREATE INDEX ready_sessions_in_order ON ready_sessions (first_seq);
CREATE INDEX ready_sessions_urgent ON ready_sessions (first_seq) WHERE first_seq <= urgent_seq;
CREATE INDEX windows_of_user ON windows (user_id, state, session_id);
CREATE INDEX windows_in_order ON windows (state, first_seq);
CREATE UNIQUE INDEX windows_by_token ON windows (token) WHERE token IS NOT NULL;
CREATE INDEX windows_by_due ON windows (state, due_at);
CREATE INDEX users_locked ON users (lock_expires_at) WHERE lock_token IS NOT NULL;
CREATE UNIQUE INDEX notes_of_user ON notes (user_id, user_position);
CREATE INDEX notes_dropped_by_age ON notes_dropped (dropped_at);
CREATE UNIQUE INDEX receipts_of_user ON receipts (user_id, ordinal);
CREATE INDEX receipts_by_age ON receipts (kept_at);
CREATE INDEX rounds_under_way ON rounds (begun_at) WHERE begun_at IS NOT NULL;
CREATE INDEX rounds_in_order ON rounds (ended_at, user_id);
CREATE UNIQUE INDEX chains_of_user ON chains (user_id, position);
CREATE INDEX chains_by_age ON chains (kept_at);
CREATE INDEX turns_by_age ON turns (opened_at);
CREATE INDEX messages_of_conversation ON messages (user_id, conversation_id);
CREATE INDEX messages_of_turn ON messages (turn_id) WHERE turn_id != '';
CREATE INDEX messages_by_age ON messages (added_at);
CREATE INDEX turn_branches_by_key ON turn_branches (user_id, key);
CREATE INDEX turn_branches_of_user ON turn_branches (user_id, position);
CREATE INDEX turn_branches_of_tree ON turn_branches (tree_id, is_abandoned, position);
CREATE INDEX turn_branches_by_parent ON turn_branches (parent_id) WHERE parent_id != '';
CREATE INDEX turn_branches_unsettled ON turn_branches (user_id) WHERE is_settled = 0;
CREATE INDEX turn_branches_concurrent ON turn_branches (tree_id) WHERE is_concurrent;
CREATE INDEX profiles_unwritten ON profiles (updated_at) WHERE prose IS NULL;
CREATE TRIGGER profiles_become_stale AFTER UPDATE OF revision ON users
    WHEN new.revision % 2 = 0 AND new.revision > old.revision AND NOT EXISTS (SELECT 1 FROM profiles_switched_off)
    BEGIN
        INSERT OR IGNORE INTO stale_profiles (user_id) SELECT new.user_id WHERE new.user_id NOT LIKE ' %';
    END;
CREATE UNIQUE INDEX compacted_states_of_user ON compacted_states (user_id, position);
CREATE INDEX compacted_states_by_age ON compacted_states (kept_at);
CREATE INDEX known_exchanges_by_words ON known_exchanges (words, user_id);
CREATE INDEX known_exchanges_of_user ON known_exchanges (user_id, position);
CREATE INDEX recording_gaps_by_end ON recording_gaps (ended_at);
CREATE TRIGGER words_are_deleted AFTER DELETE ON turns WHEN old.stage != 'nothing'
    BEGIN
        INSERT OR IGNORE INTO removed_words (user_id, turn_id) VALUES (old.user_id, old.id);
    END;
CREATE TRIGGER words_are_rewritten AFTER UPDATE OF messages ON turns WHEN old.stage != 'nothing'
    BEGIN
        INSERT OR IGNORE INTO removed_words (user_id, turn_id) VALUES (old.user_id, old.id);
    END;
CREATE INDEX session_summaries_by_time ON session_summaries (user_id, last_at);
CREATE UNIQUE INDEX session_summaries_by_id ON session_summaries (user_id, id);
CREATE INDEX summaries_due_in_order ON summaries_due (quiet_since);
CREATE INDEX turns_in_no_summary_of_user ON turns_in_no_summary (user_id);
CREATE TRIGGER summaries_are_withdrawn AFTER DELETE ON session_summaries
    BEGIN
        INSERT INTO summaries_withdrawn (user_id, session_id, series, version)
        SELECT old.user_id, old.session_id, old.series, old.version WHERE NOT EXISTS (
            SELECT 1 FROM summaries_withdrawn
            WHERE user_id = old.user_id AND session_id = old.session_id AND series = old.series
        );
    END;
CREATE TRIGGER sessions_go_on AFTER UPDATE OF finished_at ON turns
    WHEN new.finished_at IS NOT NULL AND new.finished_at IS NOT old.finished_at
    
    BEGIN
        DELETE FROM summaries_due WHERE user_id = new.user_id AND session_id = new.session_id;
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        VALUES (new.user_id, new.session_id, random(), new.finished_at);
    END;
CREATE TRIGGER sessions_go_on_at_once AFTER INSERT ON turns WHEN new.finished_at IS NOT NULL
    
    BEGIN
        DELETE FROM summaries_due WHERE user_id = new.user_id AND session_id = new.session_id;
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        VALUES (new.user_id, new.session_id, random(), new.finished_at);
    END;
CREATE TRIGGER turns_are_reworded AFTER UPDATE OF messages, answer ON turns
    WHEN old.finished_at IS NOT NULL AND (new.messages IS NOT old.messages OR length(old.answer) > 0)
    
    BEGIN
        DELETE FROM session_summaries WHERE user_id = new.user_id AND session_id = new.session_id;
        UPDATE summaries_due SET token = random(), not_before = 0, tries = 0 WHERE user_id = new.user_id AND session_id = new.session_id;
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        SELECT new.user_id, new.session_id, random(), 0
        WHERE NOT EXISTS (SELECT 1 FROM summaries_due WHERE user_id = new.user_id AND session_id = new.session_id);
        
    END;
CREATE TRIGGER turns_leave_or_return AFTER UPDATE OF stage ON turns
    WHEN new.stage != old.stage AND (new.stage IN ('abandoned', 'withdrawn') OR old.stage = 'abandoned')
    
    BEGIN
        DELETE FROM session_summaries WHERE user_id = new.user_id AND session_id = new.session_id;
        UPDATE summaries_due SET token = random(), not_before = 0, tries = 0 WHERE user_id = new.user_id AND session_id = new.session_id;
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        SELECT new.user_id, new.session_id, random(), 0
        WHERE NOT EXISTS (SELECT 1 FROM summaries_due WHERE user_id = new.user_id AND session_id = new.session_id);
        
    END;
CREATE TRIGGER turns_are_learnt_late AFTER UPDATE OF stage ON turns
    WHEN new.stage = 'learnt' AND old.stage != 'learnt'
    BEGIN
        UPDATE summaries_due SET token = random() WHERE user_id = new.user_id AND session_id = new.session_id;
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        SELECT new.user_id, new.session_id, random(), new.finished_at WHERE NOT EXISTS (
            SELECT 1 FROM summaries_due WHERE user_id = new.user_id AND session_id = new.session_id
        );
    END;
CREATE TRIGGER turns_are_deleted AFTER DELETE ON turns
    
    BEGIN
        DELETE FROM session_summaries WHERE user_id = old.user_id AND session_id = old.session_id;
        UPDATE summaries_due SET token = random(), not_before = 0, tries = 0 WHERE user_id = old.user_id AND session_id = old.session_id;
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        SELECT old.user_id, old.session_id, random(), 0
        WHERE NOT EXISTS (SELECT 1 FROM summaries_due WHERE user_id = old.user_id AND session_id = old.session_id);
        
        DELETE FROM turns_in_no_summary WHERE turn_id = old.id;
        DELETE FROM summaries_due WHERE user_id = old.user_id AND session_id = old.session_id AND NOT EXISTS (
            SELECT 1 FROM turns WHERE user_id = old.user_id AND session_id = old.session_id
        );

    END;
CREATE TRIGGER turns_are_left_out AFTER INSERT ON turns_in_no_summary
    
    BEGIN
        DELETE FROM session_summaries WHERE user_id = new.user_id AND session_id = new.session_id;
        UPDATE summaries_due SET token = random(), not_before = 0, tries = 0 WHERE user_id = new.user_id AND session_id = new.session_id;
        INSERT INTO summaries_due (user_id, session_id, token, quiet_since)
        SELECT new.user_id, new.session_id, random(), 0
        WHERE NOT EXISTS (SELECT 1 FROM summaries_due WHERE user_id = new.user_id AND session_id = new.session_id);
        
    END;
CREATE UNIQUE INDEX idempotency_keys_of_user ON idempotency_keys (user_id, position);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (claimed_at);
CREATE INDEX erasures_pending ON erasures (position) WHERE rewritten_at IS NULL;
CREATE INDEX erasures_of_user ON erasures (user_hash);
CREATE INDEX project_members_by_user ON project_members (user_id);
CREATE INDEX project_readers_by_user ON project_readers (user_id);
CREATE INDEX project_memories_by_project ON project_memories (project_key);
CREATE INDEX project_memories_by_author ON project_memories (author_id);
COMMIT;