-- name: lock_owners
SELECT lock_owner FROM users WHERE lock_token IS NOT NULL;

-- name: expired_lock
SELECT 1 FROM users WHERE lock_token IS NOT NULL AND lock_expires_at <= :now LIMIT 1;

-- name: free_locks
UPDATE users SET revision = revision + 1,
    lock_token = NULL, lock_owner = NULL, lock_expires_at = NULL
WHERE lock_token IS NOT NULL
  AND (lock_expires_at <= :now OR lock_owner IN (SELECT value FROM json_each(:dead_owners)));

-- name: revision_of
SELECT revision FROM users WHERE user_id = :user_id;

-- name: revision_and_known
SELECT revision, known_since FROM users WHERE user_id = :user_id;

-- name: changes_between
SELECT memory_id FROM changes WHERE user_id = :user_id AND revision > :number AND revision <= :revision;

-- name: lock_of_user
SELECT lock_token, lock_owner, lock_expires_at, revision FROM users WHERE user_id = :user_id AND lock_token IS NOT NULL;

-- name: insert_user
INSERT INTO users VALUES (:user_id, :revision, :revision, NULL, NULL, NULL) ON CONFLICT DO NOTHING;

-- name: pass_revision
UPDATE users SET revision = revision + 1 WHERE user_id = :user_id;

-- name: take_lock
UPDATE users SET revision = revision + 1, lock_token = :token, lock_owner = :owner, lock_expires_at = :expires_at
WHERE user_id = :user_id;

-- name: renew_lock
UPDATE users SET lock_expires_at = :until WHERE user_id = :user_id AND lock_token = :token;

-- name: pass_lost_lock
UPDATE users SET revision = revision + 2, known_since = revision + 2 + revision % 2 WHERE user_id = :user_id;

-- name: release_lock
UPDATE users
SET revision = CASE WHEN :is_touched OR known_since >= revision THEN revision + 1 ELSE revision - 1 END,
    lock_token = NULL, lock_owner = NULL, lock_expires_at = NULL
WHERE user_id = :user_id RETURNING revision;

-- name: insert_changes
INSERT INTO changes (user_id, revision, memory_id)
SELECT users.user_id, users.revision + :ahead, value FROM users, json_each(:touched) WHERE users.user_id = :user_id
ON CONFLICT DO NOTHING;

-- name: revision_beyond_limit
SELECT revision FROM changes WHERE user_id = :user_id ORDER BY revision DESC LIMIT 1 OFFSET :changes_max;

-- name: delete_changes
DELETE FROM changes WHERE user_id = :user_id AND revision <= :revision;

-- name: forgotten_among
SELECT memory_id FROM forgotten WHERE user_id = :user_id AND memory_id IN (SELECT value FROM json_each(:memory_ids));

-- name: insert_forgotten
INSERT INTO forgotten SELECT :user_id, value FROM json_each(:memory_ids) WHERE TRUE ON CONFLICT DO NOTHING;

-- name: raise_known_since
UPDATE users SET known_since = greatest(known_since, :revision) WHERE user_id = :user_id;

-- name: users_of_owners
SELECT user_id FROM users WHERE lock_token IS NOT NULL
  AND (lock_expires_at <= :now OR lock_owner IN (SELECT value FROM json_each(:dead_owners)));
