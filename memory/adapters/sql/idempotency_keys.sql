-- name: delete_older
DELETE FROM idempotency_keys WHERE claimed_at < :now;

-- name: insert_key
INSERT INTO idempotency_keys (user_id, key, fingerprint, claimed_at)
VALUES (:user_id, :key, :fingerprint, :now)
ON CONFLICT DO NOTHING;

-- name: delete_beyond_limit
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
