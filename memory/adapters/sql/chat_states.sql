-- name: chat_state
-- One row for the user, then one for each note, profile, and memory that was written since the profiles were put.
SELECT 'user' AS part, '' AS key,
    coalesce(
        (SELECT revision FROM users WHERE user_id = :user_id),
        (SELECT revision FROM erased_users WHERE user_hash = :user_hash), 0
    ) AS number,
    (SELECT opted_out_at FROM opted_out_users WHERE user_hash = :user_hash) AS at,
    (SELECT placement FROM model_traits WHERE model = :model AND learnt_at > :after) AS text,
    NULL AS memory_ids, CAST(NULL AS BYTEA) AS pinned, CAST(NULL AS BYTEA) AS lines
UNION ALL
SELECT 'note', key, tokens, made_at, text, memory_ids, NULL, NULL
FROM notes
WHERE user_id = :user_id AND key IN (SELECT value FROM json_each(:note_keys))
UNION ALL
SELECT CASE WHEN is_enabled THEN 'profile' ELSE 'disabled profile' END,
    project_id, version, updated_at, NULL, NULL, pinned, lines
FROM profiles
WHERE user_id = :user_id AND project_id IN (SELECT value FROM json_each(:project_ids))
UNION ALL
SELECT 'written', memory_id, NULL, NULL, NULL, NULL, NULL, NULL
FROM changes
WHERE user_id = :user_id
  AND revision > coalesce((SELECT revision FROM profiles_built WHERE user_id = :user_id), 0)
  AND EXISTS (
    SELECT 1 FROM profiles
    WHERE user_id = :user_id AND project_id IN (SELECT value FROM json_each(:project_ids)) AND length(lines) > 2
  );

-- name: withdrawn_since
-- Users who opted out, were erased, or had something dropped from their notes: by id, or by the digest of it.
SELECT user_id, '' AS user_hash, max(dropped_at) FROM notes_dropped WHERE dropped_at > :at GROUP BY user_id
UNION ALL
SELECT '', user_hash, opted_out_at FROM opted_out_users WHERE opted_out_at > :at
UNION ALL
SELECT '', user_hash, erased_at FROM erased_users WHERE erased_at > :at;
