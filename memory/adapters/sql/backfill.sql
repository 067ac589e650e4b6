-- name: erase_conversations
INSERT INTO erased_conversations VALUES (:user_hash) ON CONFLICT DO NOTHING;

-- name: end_of_turn
SELECT coalesce(answered_at, said_at) FROM turns WHERE id = :turn_id;

-- name: erased_conversations
SELECT 1 FROM erased_conversations WHERE user_hash = :user_hash;

-- name: turn_by_id
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE id = :turn_id;
