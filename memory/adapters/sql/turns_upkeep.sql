-- name: owners_of_work
SELECT owner FROM turns WHERE status = 'opened' UNION SELECT owner FROM windows WHERE state = 'leased';

-- name: opened_by
SELECT seq, user_id, session_id, stage FROM turns
WHERE status = 'opened' AND (owner = :owner OR opened_at < :opened_before);

-- name: make_unknown
UPDATE turns SET status = 'unknown', finished_at = :now, stage = CASE WHEN stage = 'open' THEN 'ready' ELSE stage END
WHERE status = 'opened' AND (owner = :owner OR opened_at < :opened_before);

-- name: end_leases
UPDATE windows SET due_at = least(due_at, :now) WHERE state = 'leased' AND owner = :owner;

-- name: given_up_windows
SELECT id, user_id, session_id, reason, buried_at, attempt + outages FROM windows
WHERE state IN ('dead', 'shed') ORDER BY buried_at, first_seq LIMIT :limit;

-- name: ids_of_window
SELECT id FROM turns WHERE stage = 'window' AND window_id = :window_id ORDER BY seq;

-- name: replay_windows
UPDATE windows
SET state = 'waiting', due_at = 0, attempt = 0, outages = 0, outage_since = NULL, buried_at = NULL
WHERE state IN ('dead', 'shed') AND (:window_ids = '[]' OR id IN (SELECT value FROM json_each(:window_ids)));

-- name: given_up_among
SELECT id FROM windows WHERE state IN ('dead', 'shed') AND id IN (SELECT value FROM json_each(:window_ids));

-- name: make_urgent
UPDATE ready_sessions SET urgent_seq = greatest(urgent_seq, (
    SELECT max(seq) FROM turns
    WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready'
      AND turns.user_id = ready_sessions.user_id AND turns.session_id = ready_sessions.session_id
))
WHERE user_id = :user_id AND :session_id IN ('', session_id);

-- name: unlearnt_turns
SELECT seq, session_id, stage, window_id, length(messages) + length(answer) FROM turns
WHERE stage IN ('open', 'ready', 'window') AND user_id = :user_id AND opened_at < :opened_before
    AND :project_id IN ('', project_id)
  AND (:only = '[]' OR id IN (SELECT value FROM json_each(:only)))
  AND id NOT IN (SELECT value FROM json_each(:spare));

-- name: take_out_turn
UPDATE turns SET stage = :stage, window_id = NULL WHERE seq = :seq;

-- name: withdraw_abandoned
UPDATE turns SET stage = 'withdrawn'
WHERE stage = 'abandoned' AND opened_at < :opened_before AND :project_id IN ('', project_id)
  AND id IN (SELECT turn_id FROM turn_branches WHERE user_id = :user_id AND is_abandoned AND reached != 'learnt')
  AND (:only = '[]' OR id IN (SELECT value FROM json_each(:only)))
  AND id NOT IN (SELECT value FROM json_each(:spare))
RETURNING session_id;

-- name: left_in_window
SELECT seq, id, finished_at FROM turns WHERE stage = 'window' AND window_id = :window_id ORDER BY seq;

-- name: delete_window
DELETE FROM windows WHERE id = :window_id;

-- name: user_of_window
SELECT user_id, session_id FROM windows WHERE id = :window_id;

-- name: rename_in_turns
UPDATE turns SET window_id = :renewed WHERE stage = 'window' AND window_id = :window_id;

-- name: renew_window
UPDATE windows SET id = :renewed, first_seq = :first_seq, turns = :turns, first_finished_at = :first_finished_at,
    plan = NULL, token = NULL, owner = NULL,
    due_at = CASE WHEN state = 'leased' THEN 0 ELSE due_at END,
    attempt = CASE WHEN state IN ('dead', 'shed') THEN attempt ELSE 0 END,
    state = CASE WHEN state = 'leased' THEN 'waiting' ELSE state END
WHERE id = :window_id;

-- name: count_unlearnt
-- Those that were given up, those that wait for their time, and all others with those.
SELECT coalesce(sum(CASE WHEN windows.state IN ('dead', 'shed') THEN 1 ELSE 0 END), 0),
    coalesce(sum(CASE WHEN windows.state = 'waiting' AND windows.due_at > :now THEN 1 ELSE 0 END), 0),
    coalesce(sum(CASE WHEN windows.state IN ('dead', 'shed') THEN 0 ELSE 1 END), 0)
FROM turns LEFT JOIN windows ON windows.id = turns.window_id
WHERE stage IN ('open', 'ready', 'window') AND turns.user_id = :user_id
  AND :session_id IN ('', turns.session_id) AND opened_at < :opened_before;

-- name: count_unsettled
SELECT count(*) FROM turn_branches WHERE NOT is_settled AND user_id = :user_id AND :session_id IN ('', session_id);

-- name: count_opened
SELECT count(*) FROM turns WHERE status = 'opened';

-- name: ready_depth
SELECT coalesce(sum(turns), 0), min(first_finished_at) FROM ready_sessions;

-- name: window_depth
SELECT state, sum(turns), min(first_finished_at) FROM windows GROUP BY state;

-- name: unexamined_turns
SELECT seq, length(messages) + length(answer) FROM turns
WHERE stage = 'ready' AND worth IS NULL ORDER BY seq LIMIT :limit;

-- name: ready_before
SELECT seq FROM turns
WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready' AND user_id = :user_id
    AND session_id = :session_id AND seq < :seq
  AND length(messages) + length(answer) <= :earlier_bytes_max
ORDER BY seq DESC LIMIT :earlier_turns;

-- name: turn_at
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE seq = :seq;

-- name: unexamined_turn
SELECT seq, user_id, session_id FROM turns WHERE id = :turn_id AND stage = 'ready' AND worth IS NULL;

-- name: set_worth
UPDATE turns SET worth = :worth, is_explicit = :is_explicit WHERE seq = :seq;

-- name: raise_urgency
UPDATE ready_sessions SET urgent_seq = greatest(urgent_seq, :urgent_seq), asked_seq = greatest(asked_seq, :asked_seq)
WHERE user_id = :user_id AND session_id = :session_id;

-- name: shed_window
UPDATE windows SET state = 'shed', buried_at = :now, reason = :shed_reason WHERE id = :window_id;

-- name: count_ready
SELECT coalesce(sum(turns), 0) FROM ready_sessions;

-- name: count_in_windows
SELECT coalesce(sum(turns), 0) FROM windows WHERE state IN ('leased', 'waiting');

-- name: ready_turns
SELECT user_id, session_id, seq, id, finished_at, length(messages) + length(answer), worth, is_explicit
FROM turns WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready'
ORDER BY user_id, session_id, seq;

-- name: set_order
UPDATE turns SET is_order = TRUE, order_claims = :encoded WHERE id = :turn_id;

-- name: orders_for
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id, order_claims, (seq > (SELECT seq FROM turns WHERE id = :id) OR said_at > :filled_in_at) AS is_since
FROM turns
WHERE user_id = :user_id AND is_order AND (window_id IS NULL OR window_id != :window_id)
  AND (session_id = :session_id OR seq > (SELECT seq FROM turns WHERE id = :id) OR said_at > :filled_in_at)
ORDER BY session_id = :session_id DESC, seq DESC LIMIT :limit;

-- name: learnt_before
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id FROM turns
WHERE user_id = :user_id AND session_id = :session_id AND seq < (SELECT seq FROM turns WHERE id = :turn_id)
  AND stage NOT IN ('abandoned', 'withdrawn') AND status IN ('unknown', 'closed', 'filled_in')
ORDER BY seq DESC LIMIT :limit;

-- name: failed_before
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id FROM turns
WHERE user_id = :user_id AND session_id = :session_id AND seq < (SELECT seq FROM turns WHERE id = :turn_id)
  AND stage NOT IN ('abandoned', 'withdrawn') AND status IN ('aborted', 'failed')
ORDER BY seq DESC LIMIT :limit;
