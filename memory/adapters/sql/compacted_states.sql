-- name: keys_with_state
SELECT key FROM compacted_states WHERE user_id = :user_id AND key IN (SELECT value FROM json_each(:keys));

-- name: dropped_since
SELECT 1 FROM compacted_states_dropped WHERE user_id = :user_id AND dropped_at >= :made_at;

-- name: insert_state
INSERT INTO compacted_states (user_id, key, state, kept_at) VALUES (:user_id, :key, :state, :made_at)
ON CONFLICT DO NOTHING RETURNING position;

-- name: delete_up_to
DELETE FROM compacted_states WHERE position <= :position;

-- name: delete_older
DELETE FROM compacted_states WHERE kept_at < :made_at;

-- name: delete_beyond_limit
DELETE
FROM compacted_states
WHERE user_id = :user_id AND position <=
    (SELECT position FROM compacted_states WHERE user_id = :user_id ORDER BY position DESC LIMIT 1 OFFSET :user_states_max);

-- name: forget_drops
DELETE FROM compacted_states_dropped WHERE dropped_at < :now;

-- name: note_drop
INSERT INTO compacted_states_dropped (user_id, dropped_at) VALUES (:user_id, :now)
ON CONFLICT (user_id) DO UPDATE SET dropped_at = excluded.dropped_at;

-- name: delete_states
DELETE FROM compacted_states WHERE user_id = :user_id;

-- name: state_of_key
SELECT state FROM compacted_states WHERE user_id = :user_id AND key = :key;
