-- name: opened_turn
SELECT seq, user_id, session_id, stage FROM turns WHERE id = :turn_id AND status = 'opened';

-- name: finish_turn
UPDATE turns SET status = :status, stage = :stage, finished_at = :now, answered_at = :answered_at, answer = :answer,
    receipt_id = CASE WHEN length(:receipt_id) = 0 THEN receipt_id ELSE :receipt_id END
WHERE seq = :seq;

-- name: complete_turn
UPDATE turns SET status = 'closed', answer = :answer, answered_at = :answered_at,
    receipt_id = CASE WHEN length(:receipt_id) = 0 THEN receipt_id ELSE :receipt_id END
WHERE id = :turn_id AND status IN (:ended_as, 'unknown') AND length(answer) = 0
RETURNING user_id, session_id, stage;

-- name: count_answer
UPDATE ready_sessions SET bytes = bytes + :size WHERE user_id = :user_id AND session_id = :session_id;

-- name: turns_after
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE user_id = :user_id AND seq > :after AND :session_id IN ('', session_id)
ORDER BY seq LIMIT :page_turns;
