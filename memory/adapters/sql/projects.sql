-- name: insert_project
INSERT INTO projects (key, tenant, project_id, created_at)
VALUES (:key, :tenant, :project_id, :created_at)
ON CONFLICT DO NOTHING;

-- name: projects_of_user
SELECT key, tenant, project_id, created_at, role
FROM project_members
JOIN projects ON key = project_key
WHERE user_id = :user
ORDER BY created_at, key;

-- name: members_of
SELECT user_id, role, joined_at FROM project_members WHERE project_key = :key ORDER BY joined_at, user_id;

-- name: delete_member
DELETE FROM project_members WHERE project_key = :key AND user_id = :user_id;

-- name: put_member
INSERT INTO project_members (project_key, user_id, role, joined_at)
SELECT key, :user_id, :role, :at FROM projects WHERE key = :key
ON CONFLICT (project_key, user_id) DO UPDATE SET role = excluded.role;

-- name: insert_reader
INSERT INTO project_readers (project_key, user_id) SELECT key, :user_id FROM projects WHERE key = :key
ON CONFLICT DO NOTHING;

-- name: readers_of
SELECT user_id FROM project_readers WHERE project_key = :key ORDER BY user_id;

-- name: delete_reader
DELETE FROM project_readers WHERE user_id = :user_id;

-- name: delete_readers
DELETE FROM project_readers WHERE project_key = :key;

-- name: delete_entries
DELETE FROM project_memories WHERE project_key = :key;

-- name: delete_members
DELETE FROM project_members WHERE project_key = :key;

-- name: delete_project
DELETE FROM projects WHERE key = :key;

-- name: put_entry
INSERT INTO project_memories (memory_id, project_key, author_id, visibility, changed_at)
SELECT :memory_id, key, :author_id, :visibility, :changed_at FROM projects WHERE key = :project_key
ON CONFLICT (memory_id) DO UPDATE SET project_key = excluded.project_key, author_id = excluded.author_id,
    visibility = excluded.visibility, changed_at = excluded.changed_at;

-- name: delete_entries_by_id
DELETE FROM project_memories WHERE memory_id IN (SELECT value FROM json_each(:memory_ids));

-- name: access_by_id
SELECT key, tenant, project_id, created_at, role FROM projects
LEFT JOIN project_members ON project_key = key AND user_id = :user WHERE tenant = :tenant AND project_id = :project_id;

-- name: access_by_key
SELECT key, tenant, project_id, created_at, role FROM projects
LEFT JOIN project_members ON project_key = key AND user_id = :user WHERE key = :key;

-- name: entries_by_id
SELECT memory_id, project_key, author_id, visibility, changed_at FROM project_memories
WHERE memory_id IN (SELECT value FROM json_each(:memory_ids));

-- name: entries_of_author
SELECT memory_id, project_key, author_id, visibility, changed_at FROM project_memories
WHERE author_id = :author_id ORDER BY memory_id;
