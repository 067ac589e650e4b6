-- name: link_by_name
SELECT session_id, turn_id, note_keys FROM chains WHERE user_id = :user_id AND name = :name;

-- name: turns_before
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE user_id = :user_id AND session_id = :session_id AND project_id = :project_id AND agent_id = :agent_id
  AND stage NOT IN ('withdrawn', 'abandoned')
  AND seq <= coalesce((SELECT seq FROM turns WHERE id = :turn_id), 9223372036854775807)
ORDER BY seq DESC LIMIT :limit;

-- name: delete_links
DELETE FROM chains WHERE user_id = :user_id;

-- name: put_link
-- A link that is kept again is the newest.
INSERT INTO chains (user_id, name, session_id, turn_id, note_keys, kept_at)
VALUES (:user_id, :name, :session_id, :turn_id, :keys, :at) RETURNING position;

-- name: delete_up_to
DELETE FROM chains WHERE position <= :position;

-- name: delete_older
DELETE FROM chains WHERE kept_at < :at;

-- name: delete_beyond_limit
DELETE
FROM chains
WHERE user_id = :user_id AND position <=
    (SELECT position FROM chains WHERE user_id = :user_id ORDER BY position DESC LIMIT 1 OFFSET :user_links_max);

-- name: delete_link
DELETE FROM chains WHERE user_id = :user_id AND name = :name;

-- name: delete_older_keys
DELETE FROM idempotency_keys WHERE claimed_at < :now;

-- name: insert_key
INSERT INTO idempotency_keys (user_id, key, fingerprint, claimed_at)
VALUES (:user_id, :key, :fingerprint, :now)
ON CONFLICT DO NOTHING;

-- name: delete_keys_beyond_limit
DELETE
FROM idempotency_keys
WHERE user_id = :user_id AND position <=
    (SELECT position FROM idempotency_keys WHERE user_id = :user_id ORDER BY position DESC LIMIT 1 OFFSET :user_calls_max);

-- name: call_of_key
SELECT fingerprint, claimed_at, answer FROM idempotency_keys WHERE user_id = :user_id AND key = :key;

-- name: set_answer
UPDATE idempotency_keys SET answer = :answer WHERE user_id = :user_id AND key = :key;

-- name: delete_keys
DELETE FROM idempotency_keys WHERE user_id = :user_id;
