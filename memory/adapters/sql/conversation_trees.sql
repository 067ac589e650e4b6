-- name: session_of_turn
SELECT session_id FROM turn_branches WHERE turn_id = :id;

-- name: insert_left_out
INSERT INTO turn_branches (turn_id, user_id, session_id, key, tree_id, parent_id, is_seen, is_left_out)
VALUES (:turn_id, :user_id, '', :key, '', '', TRUE, TRUE) RETURNING position;

-- name: delete_beyond_limit
DELETE
FROM turn_branches
WHERE user_id = :user_id AND is_settled AND position <=
    (SELECT position FROM turn_branches WHERE user_id = :user_id ORDER BY position DESC LIMIT 1 OFFSET :positions_max);

-- name: end_of_turn
SELECT coalesce(answered_at, said_at) FROM turns WHERE id = :turn_id;

-- name: erased_conversations
SELECT 1 FROM erased_conversations WHERE user_hash = :user_hash;

-- name: turn_by_id
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE id = :turn_id;
