-- What leads tables of version 3 to version 4. Version 3 was on SQLite only; what its triggers did, `turn_effects`
-- does now.

DROP TRIGGER profiles_become_stale;
DROP TRIGGER words_are_deleted;
DROP TRIGGER words_are_rewritten;
DROP TRIGGER summaries_are_withdrawn;
DROP TRIGGER sessions_go_on;
DROP TRIGGER sessions_go_on_at_once;
DROP TRIGGER turns_are_reworded;
DROP TRIGGER turns_are_learnt_late;
DROP TRIGGER turns_are_deleted;
DROP TRIGGER turns_are_left_out;
DROP TRIGGER turns_leave_or_return;
ALTER TABLE turns ADD COLUMN utc_offset BIGINT;
ALTER TABLE uses DROP COLUMN total;
DROP INDEX profiles_unwritten;
ALTER TABLE profiles DROP COLUMN prose;
DROP TABLE profiles_switched_off;
-- Users were not queued while it had a row.
INSERT INTO stale_profiles (user_id)
SELECT users.user_id FROM users LEFT JOIN profiles_built AS built ON built.user_id = users.user_id
WHERE users.revision - users.revision % 2 > coalesce(built.revision, 0) AND users.user_id NOT LIKE ' %'
ON CONFLICT DO NOTHING;
ALTER TABLE erasures DROP COLUMN scan;
CREATE TABLE owners (name TEXT PRIMARY KEY, beat BIGINT NOT NULL, introduction TEXT NOT NULL);
CREATE TABLE snapshots (
    user_hash TEXT PRIMARY KEY, snapshot BYTEA NOT NULL, size BIGINT NOT NULL, used_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX snapshots_by_use ON snapshots (used_at);
CREATE INDEX opted_out_users_by_time ON opted_out_users (opted_out_at);
CREATE INDEX erased_users_by_time ON erased_users (erased_at);
-- Its members have joined, and none of them is known to have chosen to.
CREATE TABLE project_invitations (
    project_key TEXT NOT NULL, user_id TEXT NOT NULL, role TEXT NOT NULL,
    invited_by TEXT NOT NULL, invited_at DOUBLE PRECISION NOT NULL, PRIMARY KEY (project_key, user_id)
);
CREATE INDEX project_invitations_by_user ON project_invitations (user_id, invited_at);
CREATE INDEX project_invitations_by_sender ON project_invitations (invited_by, user_id);
CREATE TABLE project_choices (
    user_id TEXT NOT NULL, project_key TEXT NOT NULL, PRIMARY KEY (user_id, project_key)
);
