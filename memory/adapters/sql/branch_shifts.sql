-- name: newer_on_path
SELECT 1 FROM turn_branches WHERE tree_id = :tree_id AND NOT is_abandoned AND position > :position;

-- name: concurrent_in_tree
SELECT 1 FROM turn_branches WHERE tree_id = :tree_id AND is_concurrent LIMIT 1;

-- name: unanswered_siblings
SELECT id FROM turn_branches JOIN turns ON id = turn_id
WHERE parent_id = :parent_id AND turns.user_id = :user_id AND id != :id AND NOT is_abandoned
  AND (status = 'opened' OR coalesce(answered_at, finished_at) > :at)
  AND key NOT IN (SELECT value FROM json_each(:keys));

-- name: later_sibling
SELECT 1 FROM turn_branches AS own
JOIN turn_branches AS other ON other.parent_id = own.parent_id AND other.tree_id = own.tree_id
JOIN turns ON turns.id = other.turn_id
WHERE own.turn_id = :turn_id AND own.is_concurrent AND NOT other.is_abandoned AND other.parent_id != ''
  AND other.position > own.position AND said_at + :overlap_seconds_min >= :at;

-- name: no_longer_concurrent
UPDATE turn_branches SET is_concurrent = FALSE WHERE turn_id = :turn_id;

-- name: path_to
-- From the turn up to the beginning of its conversation.
WITH RECURSIVE path (id, parent_id) AS (
    SELECT turn_id, parent_id FROM turn_branches WHERE turn_id = :turn_id
    UNION
    SELECT above.turn_id, above.parent_id FROM turn_branches AS above, path
    WHERE above.turn_id = path.parent_id AND above.user_id = :user_id
)
SELECT id FROM path;

-- name: active_in_tree
SELECT turn_id
FROM turn_branches
WHERE tree_id = :tree_id AND NOT is_abandoned AND user_id = :user_id
ORDER BY position;

-- name: abandoned_among
SELECT turn_id
FROM turn_branches
WHERE turn_id IN (SELECT value FROM json_each(:path)) AND is_abandoned
ORDER BY position;

-- name: none_concurrent
UPDATE turn_branches SET is_concurrent = FALSE WHERE tree_id = :tree_id AND is_concurrent;

-- name: mark_concurrent
UPDATE turn_branches SET is_concurrent = TRUE WHERE turn_id IN (SELECT value FROM json_each(:beside));

-- name: turns_by_id
SELECT seq, session_id, stage, window_id, length(messages) + length(answer), id FROM turns
WHERE id IN (SELECT value FROM json_each(:turn_ids)) AND user_id = :user_id;

-- name: abandon_learnt
UPDATE turns SET stage = 'abandoned' WHERE seq = :seq;

-- name: unsettle_abandoned
UPDATE turn_branches SET reached = :reached, is_settled = FALSE WHERE turn_id = :turn_id;

-- name: abandoned_turns
SELECT seq, turns.session_id, status, reached, id FROM turns JOIN turn_branches ON turn_id = id
WHERE id IN (SELECT value FROM json_each(:turn_ids)) AND turns.user_id = :user_id AND stage = 'abandoned';

-- name: set_stage
UPDATE turns SET stage = :stage WHERE seq = :seq;

-- name: unsettle
UPDATE turn_branches SET is_settled = FALSE WHERE turn_id = :turn_id;

-- name: mark_abandoned
UPDATE turn_branches SET is_abandoned = :is_abandoned WHERE turn_id IN (SELECT value FROM json_each(:turn_ids));

-- name: unsettled_user
SELECT user_id
FROM turn_branches
WHERE NOT is_settled AND user_id NOT IN (SELECT value FROM json_each(:without)) LIMIT 1;

-- name: unsettled_turns
SELECT turn_id, parent_id, said_at, is_abandoned FROM turn_branches JOIN turns ON id = turn_id
WHERE NOT is_settled AND turn_branches.user_id = :user_id ORDER BY position LIMIT :shift_turns_max;

-- name: settle_turns
UPDATE turn_branches SET is_settled = TRUE, reached = CASE WHEN is_abandoned THEN reached ELSE '' END
WHERE NOT is_settled AND user_id = :user_id AND is_abandoned = :is_abandoned
  AND turn_id IN (SELECT value FROM json_each(:turn_ids));

-- name: settle_deleted
UPDATE turn_branches SET is_settled = TRUE
WHERE NOT is_settled AND user_id = :user_id AND turn_id NOT IN (SELECT id FROM turns WHERE user_id = :user_id);
