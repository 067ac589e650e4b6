-- name: put_erasure
INSERT INTO erasures (id, user_hash, asked_at, deleted_at, deleted)
VALUES (:id, :subject, :asked_at, :deleted_at, :deleted)
ON CONFLICT (id) DO UPDATE
SET deleted_at = excluded.deleted_at, deleted = excluded.deleted, rewritten_at = NULL;

-- name: erasure_by_id
SELECT id, asked_at, deleted_at, deleted, rewritten_at
FROM erasures
WHERE id = :erasure_id AND user_hash = :subject;

-- name: latest_erasures
SELECT id, asked_at, deleted_at, deleted, rewritten_at FROM erasures ORDER BY position DESC LIMIT :limit;

-- name: pending_erasures
SELECT id, asked_at, deleted_at, deleted, rewritten_at
FROM erasures
WHERE rewritten_at IS NULL
ORDER BY position LIMIT :limit;

-- name: set_rewritten
UPDATE erasures SET rewritten_at = :at WHERE id = :id AND deleted_at = :deleted_at AND rewritten_at IS NULL;

-- name: delete_older
DELETE FROM erasures WHERE rewritten_at < :before;

-- name: delete_beyond_limit
DELETE FROM erasures WHERE position IN (
    SELECT position FROM erasures WHERE user_hash BETWEEN :first AND :last
    ORDER BY position DESC LIMIT 1000000000 OFFSET :kept
);

-- name: standing_barrier
SELECT 1 FROM barriers WHERE name = :writers AND until > :now;

-- name: note_writer
INSERT INTO written_meanwhile
SELECT :user_id
WHERE EXISTS (SELECT 1 FROM barriers WHERE name = :alone)
ON CONFLICT DO NOTHING;

-- name: barrier_by_name
SELECT token, owner FROM barriers WHERE name = :name;

-- name: delete_expired_barriers
DELETE FROM barriers WHERE until <= :now;

-- name: insert_barrier
INSERT INTO barriers VALUES (:name, :token, :owner, :until) ON CONFLICT DO NOTHING;

-- name: forget_writers
DELETE FROM written_meanwhile;

-- name: note_holders
INSERT INTO written_meanwhile SELECT user_id FROM users WHERE lock_token IS NOT NULL;

-- name: delete_barrier
DELETE FROM barriers WHERE token = :token;

-- name: forget_writers_if_lowered
DELETE FROM written_meanwhile WHERE NOT EXISTS (SELECT 1 FROM barriers WHERE name = :alone);

-- name: held_lock
SELECT 1 FROM users WHERE lock_token IS NOT NULL AND lock_expires_at > :now LIMIT 1;

-- name: writers_meanwhile
SELECT user_id FROM written_meanwhile ORDER BY user_id;
