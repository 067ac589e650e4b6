-- name: session_goes_on
-- It is due once it has been quiet for long enough.
INSERT INTO summaries_due (user_id, session_id, token, quiet_since) VALUES (:user_id, :session_id, :token, :at)
ON CONFLICT (user_id, session_id) DO UPDATE
SET token = excluded.token, quiet_since = excluded.quiet_since, not_before = 0, tries = 0;

-- name: session_is_due_again
-- A session that was not due is over, so that its next summary need not wait.
INSERT INTO summaries_due (user_id, session_id, token, quiet_since) VALUES (:user_id, :session_id, :token, 0)
ON CONFLICT (user_id, session_id) DO UPDATE SET token = excluded.token, not_before = 0, tries = 0;

-- name: session_is_due_with
INSERT INTO summaries_due (user_id, session_id, token, quiet_since) VALUES (:user_id, :session_id, :token, :at)
ON CONFLICT (user_id, session_id) DO UPDATE SET token = excluded.token;

-- name: note_withdrawn
INSERT INTO summaries_withdrawn (user_id, session_id, series, version)
SELECT user_id, session_id, series, version FROM session_summaries
WHERE user_id = :user_id AND session_id IN (SELECT value FROM json_each(:session_ids))
ON CONFLICT DO NOTHING;

-- name: delete_summaries
DELETE FROM session_summaries
WHERE user_id = :user_id AND session_id IN (SELECT value FROM json_each(:session_ids));

-- name: note_removed_words
INSERT INTO removed_words (user_id, turn_id) SELECT :user_id, value FROM json_each(:turn_ids) WHERE TRUE
ON CONFLICT DO NOTHING;

-- name: forget_left_out
DELETE FROM turns_in_no_summary WHERE turn_id IN (SELECT value FROM json_each(:turn_ids));

-- name: forget_empty_sessions
DELETE FROM summaries_due
WHERE user_id = :user_id AND session_id IN (SELECT value FROM json_each(:session_ids)) AND NOT EXISTS (
    SELECT 1 FROM turns WHERE turns.user_id = :user_id AND turns.session_id = summaries_due.session_id
);

-- name: user_with_removed
SELECT user_id FROM removed_words WHERE user_id NOT IN (SELECT value FROM json_each(:without)) LIMIT 1;

-- name: removed_of_user
SELECT turn_id FROM removed_words WHERE user_id = :user_id LIMIT :limit;

-- name: delete_removed
DELETE FROM removed_words WHERE user_id = :user_id AND turn_id IN (SELECT value FROM json_each(:turn_ids));
