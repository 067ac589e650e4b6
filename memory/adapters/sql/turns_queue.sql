-- name: add_to_session
INSERT INTO ready_sessions
    (user_id, session_id, first_seq, turns, first_finished_at, last_finished_at, bytes)
SELECT :user_id, :session_id, :seq, 1, :finished_at, :finished_at, length(messages) + length(answer)
FROM turns
WHERE seq = :seq
ON CONFLICT (user_id, session_id) DO UPDATE SET
    first_seq = least(ready_sessions.first_seq, excluded.first_seq),
    turns = ready_sessions.turns + 1,
    bytes = ready_sessions.bytes + excluded.bytes,
    first_finished_at = least(ready_sessions.first_finished_at, excluded.first_finished_at),
    last_finished_at = greatest(ready_sessions.last_finished_at, excluded.last_finished_at);

-- name: due_window
SELECT id, user_id, session_id, first_seq, 9223372036854775807 FROM windows AS mine
WHERE state IN ('leased', 'waiting') AND due_at <= :now
  AND NOT EXISTS (SELECT 1 FROM windows WHERE user_id = mine.user_id AND state = 'leased' AND due_at > :now)
  AND (is_asked OR NOT EXISTS (
          SELECT 1 FROM windows WHERE user_id = mine.user_id AND state IN ('leased', 'waiting')
          AND session_id = mine.session_id AND first_seq < mine.first_seq))
ORDER BY first_seq LIMIT 1;

-- name: lease_window
UPDATE windows
SET state = 'leased', due_at = :until, attempt = attempt + 1, token = :token, owner = :owner
WHERE id = :window_id;

-- name: leased_window
SELECT attempt, plan, first_finished_at, outages, outage_since FROM windows WHERE id = :window_id;

-- name: ready_turns
SELECT seq, id, finished_at, length(messages) + length(answer) FROM turns
WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready' AND user_id = :user_id AND session_id = :session_id
  AND seq <= :last_seq
ORDER BY seq LIMIT :limit;

-- name: insert_window
INSERT INTO windows
    (id, user_id, session_id, first_seq, turns, first_finished_at, state, due_at, attempt, reason, is_asked)
VALUES (:window_id, :user_id, :session_id, :seq, :turns, :finished_at, 'waiting', 0, 0, '', coalesce(
    (SELECT asked_seq >= :seq FROM ready_sessions WHERE user_id = :user_id AND session_id = :session_id), FALSE));

-- name: put_into_window
UPDATE turns SET stage = 'window', window_id = :window_id WHERE seq = :seq;

-- name: first_ready
SELECT seq, finished_at FROM turns
WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready' AND user_id = :user_id AND session_id = :session_id
ORDER BY seq LIMIT 1;

-- name: delete_session
DELETE FROM ready_sessions WHERE user_id = :user_id AND session_id = :session_id;

-- name: turns_of_window
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE stage = 'window' AND window_id = :window_id
ORDER BY seq;

-- name: rival_lease
SELECT 1 FROM windows WHERE user_id = :user_id AND state = 'leased' AND id != :window_id
AND due_at > (SELECT due_at FROM windows WHERE id = :window_id);

-- name: extend_lease
UPDATE windows SET due_at = :until WHERE id = :window_id;

-- name: set_plan
UPDATE windows SET plan = :plan WHERE id = :window_id;

-- name: end_turns
UPDATE turns SET stage = :stage WHERE stage = 'window' AND window_id = :window_id
RETURNING user_id, session_id, finished_at;

-- name: delete_window
DELETE FROM windows WHERE id = :window_id;

-- name: return_window
-- `outage_since` without a value: the attempt counts, and no outage goes on.
UPDATE windows SET state = 'waiting', due_at = :due_at, reason = :reason, token = NULL, owner = NULL,
    attempt = attempt - :uncounted, outages = CASE WHEN :uncounted = 0 THEN 0 ELSE outages + 1 END,
    outage_since = :outage_since
WHERE id = :window_id;

-- name: undo_lease
UPDATE windows SET state = 'waiting', due_at = 0, attempt = attempt - 1, token = NULL, owner = NULL
WHERE token = :token;

-- name: bury_window
UPDATE windows
SET state = 'dead', buried_at = :now, reason = :reason, token = NULL, owner = NULL
WHERE id = :window_id;

-- name: held_lease
SELECT 1 FROM windows WHERE id = :window_id AND state = 'leased' AND token = :token;

-- name: shrink_session
UPDATE ready_sessions SET turns = turns - :turns, bytes = bytes - :size, first_seq = :first_seq,
    first_finished_at = :first_finished_at
WHERE user_id = :user_id AND session_id = :session_id;

-- name: urgent_session
SELECT '', user_id, session_id, first_seq, urgent_seq FROM ready_sessions AS mine
WHERE first_seq <= urgent_seq
  AND NOT EXISTS (SELECT 1 FROM windows WHERE user_id = mine.user_id AND state = 'leased' AND due_at > :now)
  AND NOT EXISTS (
      SELECT 1 FROM windows WHERE user_id = mine.user_id AND state IN ('leased', 'waiting')
      AND session_id = mine.session_id)
ORDER BY first_seq LIMIT 1;

-- name: asked_session
-- For what is asked of memory, a window that waits for its time is not on its way.
SELECT '', user_id, session_id, first_seq, urgent_seq FROM ready_sessions AS mine
WHERE first_seq <= urgent_seq AND first_seq <= asked_seq
  AND NOT EXISTS (SELECT 1 FROM windows WHERE user_id = mine.user_id AND state = 'leased' AND due_at > :now)
  AND NOT EXISTS (
      SELECT 1 FROM windows WHERE user_id = mine.user_id AND state IN ('leased', 'waiting') AND due_at <= :now
      AND session_id = mine.session_id)
ORDER BY first_seq LIMIT 1;

-- name: gathered_session
SELECT '', user_id, session_id, first_seq, 9223372036854775807 FROM ready_sessions AS mine
WHERE (turns >= :turns OR :idle <= 0 OR last_finished_at <= :now - :idle OR bytes >= :bytes)
  AND NOT EXISTS (SELECT 1 FROM windows WHERE user_id = mine.user_id AND state = 'leased' AND due_at > :now)
  AND NOT EXISTS (
      SELECT 1 FROM windows WHERE user_id = mine.user_id AND state IN ('leased', 'waiting')
      AND session_id = mine.session_id)
ORDER BY first_seq LIMIT 1;

-- name: insert_turn
INSERT INTO turns (id, user_id, project_id, session_id, agent_id, trace_id, receipt_id, model, said_at, opened_at,
    finished_at, answered_at, status, stage, owner, messages, answer, utc_offset)
VALUES (:id, :user_id, :project_id, :session_id, :agent_id, :trace_id, :receipt_id, :model, :said_at, :opened_at,
    :finished_at, :answered_at, :status, :stage, :owner, :messages, :answer, :utc_offset)
ON CONFLICT DO NOTHING RETURNING seq;
