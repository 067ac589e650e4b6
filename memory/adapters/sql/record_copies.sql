-- name: turns_after
SELECT stage, is_order OR id IN (SELECT turn_id FROM turns_in_no_summary), is_order, seq, id, user_id, project_id,
    session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id, receipt_id
FROM turns
WHERE user_id = :user_id AND seq > :after
ORDER BY seq LIMIT :page_rows;

-- name: messages_after
SELECT id, conversation_id, source_type, source, target_type, target, direction, content, at, trace_id, project_id,
    turn_id, visibility, seq, ordinal, position
FROM messages
WHERE user_id = :user_id AND position > :after
ORDER BY position LIMIT :page_rows;

-- name: turns_among
SELECT id FROM turns WHERE user_id = :user_id AND id IN (SELECT value FROM json_each(:turn_ids));

-- name: insert_left_out
INSERT INTO turns_in_no_summary (turn_id, user_id, session_id) VALUES (:id, :user_id, :session_id);

-- name: mark_order
UPDATE turns SET is_order = TRUE WHERE id = :id;

-- name: release
UPDATE turns SET stage = 'ready'
WHERE user_id = :user_id AND id IN (SELECT value FROM json_each(:turn_ids)) AND stage = 'held'
RETURNING seq, session_id;

-- name: seq_of_turn
SELECT seq FROM turns WHERE id = :turn_id AND user_id = :user_id;
