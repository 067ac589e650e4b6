-- name: insert_message
INSERT INTO messages (id, user_id, project_id, conversation_id, turn_id, at, added_at, seq, ordinal, trace_id,
    source_type, source, target_type, target, direction, visibility, content)
VALUES (:id, :user_id, :project_id, :conversation_id, :turn_id, :at, :now, :seq, :ordinal, :trace_id,
    :source_type, :source, :target_type, :target, :direction, :visibility, :content)
ON CONFLICT DO NOTHING;

-- name: turn_by_id
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE id = :turn_id;

-- name: count_tool_messages
SELECT count(*) FROM messages WHERE turn_id = :turn_id;

-- name: delete_added_messages
DELETE FROM messages WHERE user_id = :user_id AND conversation_id = :conversation_id AND turn_id = '';

-- name: delete_message
DELETE FROM messages WHERE user_id = :user_id AND id = :message_id;

-- name: tool_message
SELECT 1 FROM messages WHERE turn_id = :turn_id LIMIT 1;

-- name: texts_of_turn
SELECT messages, answer, user_id, session_id, stage, finished_at FROM turns WHERE id = :turn_id;

-- name: set_answer
UPDATE turns SET answer = :text WHERE id = :turn_id;

-- name: set_messages
UPDATE turns SET messages = :written WHERE id = :turn_id;

-- name: stage_of_turn
SELECT stage FROM turns WHERE id = :turn_id;

-- name: set_content
UPDATE messages SET content = :content WHERE user_id = :user_id AND id = :message_id;

-- name: oldest_turns
SELECT user_id, id, session_id
FROM turns
WHERE opened_at < :before AND stage NOT IN ('open', 'ready', 'window')
ORDER BY opened_at LIMIT :limit;

-- name: delete_oldest_added
DELETE
FROM messages
WHERE position IN (SELECT position FROM messages WHERE added_at < :before
    AND seq = :added_seq ORDER BY added_at LIMIT :limit);

-- name: receipts_of_turns
SELECT receipt_id FROM turns
WHERE user_id = :user_id AND id IN (SELECT value FROM json_each(:turn_ids)) AND length(receipt_id) > 0;

-- name: delete_receipts
DELETE FROM receipts WHERE user_id = :user_id AND id IN (SELECT value FROM json_each(:receipt_ids));

-- name: delete_links
DELETE FROM chains WHERE user_id = :user_id AND turn_id IN (SELECT value FROM json_each(:turn_ids));

-- name: delete_tool_messages
DELETE FROM messages WHERE user_id = :user_id AND turn_id IN (SELECT value FROM json_each(:turn_ids));

-- name: delete_turns
DELETE FROM turns WHERE user_id = :user_id AND id IN (SELECT value FROM json_each(:turn_ids))
RETURNING id, session_id, stage;

-- name: turns_before
SELECT id FROM turns
WHERE user_id = :user_id AND :project_id IN ('', project_id) AND opened_at < :before LIMIT :limit;

-- name: delete_added_before
DELETE FROM messages WHERE position IN (
    SELECT position FROM messages
    WHERE user_id = :user_id AND :project_id IN ('', project_id) AND added_at < :before AND turn_id = '' LIMIT :limit
);
