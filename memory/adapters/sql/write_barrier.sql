-- name: standing_barrier
SELECT 1 FROM barriers WHERE name = :writers AND until > :now;

-- name: note_writer
INSERT INTO written_meanwhile
SELECT :user_id
WHERE EXISTS (SELECT 1 FROM barriers WHERE name = :alone)
ON CONFLICT DO NOTHING;

-- name: barrier_by_name
SELECT token, owner FROM barriers WHERE name = :name;

-- name: delete_expired
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
