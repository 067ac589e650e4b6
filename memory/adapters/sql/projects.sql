-- name: insert_project
INSERT INTO projects (key, tenant, project_id, created_at)
VALUES (:key, :tenant, :project_id, :created_at)
ON CONFLICT DO NOTHING;

-- name: choose_membership
INSERT INTO project_choices (user_id, project_key) SELECT :user_id, key FROM projects WHERE key = :key
ON CONFLICT DO NOTHING;

-- name: count_chosen
SELECT count(*) FROM project_choices
JOIN project_members USING (user_id, project_key)
WHERE user_id = :user;

-- name: access_by_id
SELECT key, tenant, project_id, created_at, role
FROM project_members
JOIN projects ON key = project_key
WHERE user_id = :user AND project_id = :project_id;

-- name: access_by_key
SELECT key, tenant, project_id, created_at, role FROM projects
LEFT JOIN project_members ON project_key = key AND user_id = :user WHERE key = :key;

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

-- name: delete_choice
DELETE FROM project_choices WHERE project_key = :key AND user_id = :user_id;

-- name: put_member
INSERT INTO project_members (project_key, user_id, role, joined_at)
SELECT key, :user_id, :role, :at FROM projects WHERE key = :key
ON CONFLICT (project_key, user_id) DO UPDATE SET role = excluded.role;

-- name: put_invitation
INSERT INTO project_invitations (project_key, user_id, role, invited_by, invited_at)
SELECT key, :user_id, :role, :invited_by, :at FROM projects WHERE key = :key
ON CONFLICT (project_key, user_id) DO UPDATE SET role = excluded.role, invited_by = excluded.invited_by,
    invited_at = excluded.invited_at;

-- name: invitations_to_project
SELECT key, tenant, project_id, created_at, user_id, role, invited_by, invited_at
FROM project_invitations JOIN projects ON key = project_key
WHERE key = :key ORDER BY invited_at, user_id;

-- name: invitations_of_user
SELECT key, tenant, project_id, created_at, user_id, role, invited_by, invited_at
FROM project_invitations JOIN projects ON key = project_key
WHERE user_id = :user AND :by IN ('', invited_by) ORDER BY invited_at DESC, key LIMIT :limit;

-- name: delete_invitation
DELETE FROM project_invitations WHERE project_key = :key AND user_id = :user_id;

-- name: delete_invitations_of_user
DELETE FROM project_invitations WHERE user_id = :user_id OR invited_by = :user_id;

-- name: delete_choices_of_user
DELETE FROM project_choices WHERE user_id = :user_id;

-- name: delete_invitations
DELETE FROM project_invitations WHERE project_key = :key;

-- name: delete_choices
DELETE FROM project_choices WHERE project_key = :key;

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

-- name: entries_by_id
SELECT memory_id, project_key, author_id, visibility, changed_at FROM project_memories
WHERE memory_id IN (SELECT value FROM json_each(:memory_ids));

-- name: entries_of_author
SELECT memory_id, project_key, author_id, visibility, changed_at FROM project_memories
WHERE author_id = :author_id ORDER BY memory_id;
