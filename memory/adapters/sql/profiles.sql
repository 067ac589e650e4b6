-- name: profiles_of_projects
SELECT project_id, version, pinned, lines, is_enabled, updated_at
FROM profiles
WHERE user_id = :user_id AND project_id IN (SELECT value FROM json_each(:project_ids));

-- name: profiles_of_user
SELECT project_id, version, pinned, lines, is_enabled, updated_at FROM profiles WHERE user_id = :user_id;

-- name: written_since
-- Memories that were written since the lines were put.
SELECT changes.memory_id
FROM changes
LEFT
JOIN profiles_built AS built ON built.user_id = changes.user_id
WHERE changes.user_id = :user_id AND changes.revision > coalesce(built.revision, 0);

-- name: revision_of
SELECT revision FROM users WHERE user_id = :user_id;

-- name: delete_profiles
DELETE FROM profiles WHERE user_id = :user_id AND (:project_id = '' OR project_id = :project_id);

-- name: stale_users
SELECT user_id FROM stale_profiles ORDER BY position LIMIT :limit;

-- name: stale_user
SELECT users.user_id
FROM users
LEFT
JOIN profiles_built AS built ON built.user_id = users.user_id
WHERE users.revision - users.revision % 2 > coalesce(built.revision, 0) AND users.user_id NOT LIKE ' %'
    AND users.user_id = :user_id;

-- name: no_longer_stale
DELETE FROM stale_profiles WHERE user_id = :user_id;

-- name: put_built
INSERT INTO profiles_built (user_id, revision)
SELECT user_id, revision - revision % 2 FROM users WHERE user_id = :user_id
ON CONFLICT (user_id) DO UPDATE SET revision = excluded.revision;

-- name: put_profile
INSERT INTO profiles (user_id, project_id, version, pinned, lines, is_enabled, updated_at)
VALUES (:user_id, :project_id, :version, :pinned, :lines, :enabled, :now)
ON CONFLICT (user_id, project_id) DO UPDATE
SET version = :version, pinned = :pinned, lines = :lines,
    is_enabled = :enabled, updated_at = :now;

-- name: queue_user
-- After a write to the user's memories. Shared projects, whose owner ids begin with a space, have no profiles.
INSERT INTO stale_profiles (user_id) SELECT user_id FROM users
WHERE user_id = :user_id AND user_id NOT LIKE ' %' AND revision % 2 = 0
ON CONFLICT DO NOTHING;
