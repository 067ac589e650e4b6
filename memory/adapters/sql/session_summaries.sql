-- name: summary_of_session
SELECT user_id, session_id, version, title, text, first_at, last_at, turn_ids, project_id, agent_id, made_by,
    made_at, series
FROM session_summaries
WHERE user_id = :user_id AND session_id = :session_id;

-- name: summaries_by_id
SELECT user_id, session_id, version, title, text, first_at, last_at, turn_ids, project_id, agent_id, made_by,
    made_at, series
FROM session_summaries
WHERE user_id = :user_id AND id IN (SELECT value FROM json_each(:ids));

-- name: summaries_of_user
SELECT user_id, session_id, version, title, text, first_at, last_at, turn_ids, project_id, agent_id, made_by,
    made_at, series, vector, origin
FROM session_summaries
WHERE user_id = :user_id
ORDER BY last_at DESC, session_id LIMIT :limit;

-- name: make_quiet
UPDATE summaries_due SET quiet_since = 0 WHERE user_id = :user_id AND session_id = :session_id;

-- name: quiet_since
SELECT quiet_since FROM summaries_due WHERE user_id = :user_id AND session_id = :session_id;

-- name: leave_out_turns
INSERT INTO turns_in_no_summary (turn_id, user_id, session_id)
SELECT id, user_id, session_id FROM turns
WHERE user_id = :user_id AND id IN (SELECT value FROM json_each(:turn_ids))
ON CONFLICT DO NOTHING RETURNING session_id;

-- name: withdrawn_summaries
SELECT user_id, session_id, series, version FROM summaries_withdrawn WHERE :user_id IN ('', user_id) LIMIT :limit;

-- name: delete_withdrawn
DELETE FROM summaries_withdrawn WHERE user_id = :user_id AND session_id = :session_id AND series = :series;

-- name: due_sessions
-- Of each user the session that has been quiet for the longest time.
SELECT user_id, session_id, token, version, tries, series FROM (
    SELECT waiting.user_id, waiting.session_id, token, coalesce(version, 0) AS version, tries,
        coalesce(series, token) AS series, quiet_since,
        row_number() OVER (PARTITION BY waiting.user_id ORDER BY quiet_since, waiting.session_id) AS place
    FROM summaries_due AS waiting LEFT JOIN session_summaries AS made
        ON made.user_id = waiting.user_id AND made.session_id = waiting.session_id
    WHERE quiet_since <= :quiet_before AND not_before <= :now AND NOT EXISTS (
        SELECT 1 FROM turns LEFT JOIN windows ON windows.id = window_id
        WHERE turns.user_id = waiting.user_id AND turns.session_id = waiting.session_id
          AND stage IN ('open', 'ready', 'window') AND (stage != 'window' OR state IN ('leased', 'waiting'))
    )
) AS found
WHERE place = 1 ORDER BY quiet_since LIMIT :limit;

-- name: turns_to_summarise
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id, length(messages) + length(answer) FROM turns
WHERE user_id = :user_id AND session_id = :session_id AND stage = 'learnt'
  AND status IN ('unknown', 'closed', 'filled_in') AND NOT is_order
  AND length(messages) + length(answer) <= :bytes_max AND id NOT IN (SELECT turn_id FROM turns_in_no_summary)
ORDER BY seq DESC LIMIT :limit;

-- name: postpone_session
UPDATE summaries_due
SET not_before = :until, tries = tries + 1
WHERE user_id = :user_id AND session_id = :session_id AND token = :token;

-- name: let_rest
UPDATE summaries_due SET quiet_since = :now WHERE user_id = :user_id AND session_id = :session_id;

-- name: leave_out_turns_until
INSERT INTO turns_in_no_summary (turn_id, user_id, session_id)
SELECT id, user_id, session_id FROM turns
WHERE user_id = :user_id AND :project_id IN ('', project_id) AND :session_id IN ('', session_id) AND said_at <= :until
  AND id NOT IN (SELECT value FROM json_each(:spare))
ON CONFLICT DO NOTHING RETURNING session_id;

-- name: said_turns
SELECT seq, id, messages FROM turns
WHERE user_id = :user_id AND :project_id IN ('', project_id) AND said_at <= :until AND seq > :after
  AND stage NOT IN ('nothing', 'withdrawn') AND NOT is_order AND length(messages) + length(answer) <= :bytes_max
  AND id NOT IN (SELECT turn_id FROM turns_in_no_summary)
ORDER BY seq LIMIT :limit;

-- name: delete_summaries
DELETE FROM session_summaries WHERE user_id = :user_id;

-- name: delete_due
DELETE FROM summaries_due WHERE user_id = :user_id;

-- name: delete_left_out
DELETE FROM turns_in_no_summary WHERE user_id = :user_id;

-- name: delete_all_withdrawn
DELETE FROM summaries_withdrawn WHERE user_id = :user_id;

-- name: take_due
DELETE FROM summaries_due WHERE user_id = :user_id AND session_id = :session_id AND token = :token;

-- name: put_summary
INSERT INTO session_summaries (user_id, session_id, version, title, text, first_at, last_at, turn_ids, project_id,
    agent_id, made_by, made_at, series, id, vector, origin)
VALUES (:user_id, :session_id, :version, :title, :text, :first_at, :last_at, :turn_ids, :project_id,
    :agent_id, :made_by, :made_at, :series, :id, :vector, :origin)
ON CONFLICT (user_id, session_id) DO UPDATE SET version = excluded.version, title = excluded.title,
    text = excluded.text, first_at = excluded.first_at, last_at = excluded.last_at, turn_ids = excluded.turn_ids,
    project_id = excluded.project_id, agent_id = excluded.agent_id, made_by = excluded.made_by,
    made_at = excluded.made_at, series = excluded.series, id = excluded.id, vector = excluded.vector,
    origin = excluded.origin;
