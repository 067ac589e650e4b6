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

-- name: count_use
INSERT INTO uses (user_id, memory_id, counted, used_at) VALUES (:user_id, :memory_id, 1, :used_at)
ON CONFLICT (user_id, memory_id) DO UPDATE
SET counted = uses.counted + 1, used_at = greatest(uses.used_at, excluded.used_at);

-- name: users_after
SELECT user_id FROM users WHERE user_id > :after AND users.user_id NOT LIKE ' %' ORDER BY user_id LIMIT :limit;

-- name: stranger
SELECT 1
FROM users
WHERE users.user_id NOT LIKE ' %' AND NOT EXISTS (SELECT 1 FROM rounds WHERE rounds.user_id = users.user_id) LIMIT 1;

-- name: round_under_way
SELECT 1 FROM rounds WHERE begun_at > :now LIMIT 1;

-- name: due_user
SELECT user_id FROM rounds WHERE ended_at <= :now ORDER BY ended_at, user_id LIMIT 1;

-- name: insert_strangers
INSERT INTO rounds (user_id, begun_at, ended_at)
SELECT user_id, NULL, :now FROM users WHERE user_id NOT LIKE ' %' ON CONFLICT DO NOTHING;

-- name: begin_round
UPDATE rounds SET begun_at = :now WHERE user_id = :user_id;

-- name: end_round
-- None of an erased user.
INSERT INTO rounds (user_id, begun_at, ended_at) SELECT user_id, NULL, :now FROM users WHERE user_id = :user_id
ON CONFLICT (user_id) DO UPDATE SET begun_at = NULL, ended_at = excluded.ended_at;
