-- name: uses_of_user
SELECT memory_id, counted, used_at FROM uses WHERE user_id = :user_id ORDER BY memory_id LIMIT :limit;

-- name: take_uses
DELETE FROM uses
WHERE user_id = :user_id AND memory_id IN (SELECT value FROM json_each(:memory_ids))
RETURNING memory_id, counted, used_at;

-- name: delete_uses
DELETE
FROM uses
WHERE user_id = :user_id AND (:memory_ids = '[]' OR memory_id IN (SELECT value FROM json_each(:memory_ids)));

-- name: add_uses
INSERT INTO uses (user_id, memory_id, counted, used_at) VALUES (:user_id, :memory_id, :counted, :used_at)
ON CONFLICT (user_id, memory_id) DO UPDATE
SET counted = uses.counted + excluded.counted, used_at = greatest(uses.used_at, excluded.used_at);
