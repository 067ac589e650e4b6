-- name: delete_note
DELETE FROM notes WHERE user_id = :user_id AND key = :key;

-- name: last_positions
SELECT (SELECT max(position) FROM notes), (SELECT max(user_position) FROM notes WHERE user_id = :user_id);

-- name: insert_note
INSERT INTO notes (position, user_id, user_position, key, text, memory_ids, made_at, tokens)
VALUES (:position, :user_id, :user_position, :key, :text, :memory_ids, :made_at, :tokens);

-- name: delete_up_to
DELETE FROM notes WHERE position <= :position;

-- name: delete_of_user_up_to
DELETE FROM notes WHERE user_id = :user_id AND user_position <= :user_position;

-- name: dropped_since
SELECT 1
FROM notes_dropped
WHERE user_id = :user_id AND dropped_at >= :made_at AND (memory_id = :every_memory OR memory_id IN
    (SELECT value FROM json_each(:memory_ids))) LIMIT 1;

-- name: forget_drops
DELETE FROM notes_dropped WHERE dropped_at < :now;

-- name: note_drops
INSERT INTO notes_dropped (user_id, memory_id, dropped_at)
SELECT :user_id, value, :now FROM json_each(:dropped) WHERE TRUE
ON CONFLICT (user_id, memory_id) DO UPDATE SET dropped_at = excluded.dropped_at;

-- name: delete_notes
DELETE FROM notes WHERE user_id = :user_id;

-- name: delete_with_memories
DELETE
FROM notes
WHERE user_id = :user_id AND EXISTS (SELECT 1 FROM json_each(notes.memory_ids) WHERE value IN
    (SELECT value FROM json_each(:dropped)));

-- name: keys_with_state
SELECT key FROM compacted_states WHERE user_id = :user_id AND key IN (SELECT value FROM json_each(:keys));

-- name: states_dropped_since
SELECT 1 FROM compacted_states_dropped WHERE user_id = :user_id AND dropped_at >= :made_at;

-- name: insert_state
INSERT INTO compacted_states (user_id, key, state, kept_at) VALUES (:user_id, :key, :state, :made_at)
ON CONFLICT DO NOTHING RETURNING position;

-- name: delete_states_up_to
DELETE FROM compacted_states WHERE position <= :position;

-- name: delete_older_states
DELETE FROM compacted_states WHERE kept_at < :made_at;

-- name: delete_states_beyond_limit
DELETE
FROM compacted_states
WHERE user_id = :user_id AND position <=
    (SELECT position FROM compacted_states WHERE user_id = :user_id ORDER BY position DESC LIMIT 1 OFFSET :user_states_max);

-- name: forget_state_drops
DELETE FROM compacted_states_dropped WHERE dropped_at < :now;

-- name: note_state_drop
INSERT INTO compacted_states_dropped (user_id, dropped_at) VALUES (:user_id, :now)
ON CONFLICT (user_id) DO UPDATE SET dropped_at = excluded.dropped_at;

-- name: delete_states
DELETE FROM compacted_states WHERE user_id = :user_id;

-- name: state_of_key
SELECT state FROM compacted_states WHERE user_id = :user_id AND key = :key;
