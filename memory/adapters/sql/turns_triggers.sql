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

-- name: make_urgent
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

-- name: orders_after
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id, order_claims
FROM turns
WHERE user_id = :user_id AND is_order AND (window_id IS NULL OR window_id != :window_id)
  AND (seq > (SELECT seq FROM turns WHERE id = :id) OR said_at > :filled_in_at)
ORDER BY seq DESC LIMIT :limit;

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
