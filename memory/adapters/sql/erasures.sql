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
