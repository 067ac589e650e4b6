-- name: turns_after
SELECT messages, answer, turn_branches.position, turn_branches.turn_id, turn_branches.session_id,
    turn_branches.tree_id, turn_branches.parent_id, turn_branches.is_seen, turn_branches.is_abandoned
FROM turn_branches JOIN turns ON turns.id = turn_id
WHERE parent_id = :turn_id AND tree_id = :tree_id ORDER BY position DESC LIMIT :candidates_max;

-- name: left_out_key
SELECT 1 FROM turn_branches WHERE user_id = :user_id AND key = :key AND is_left_out;

-- name: positions_of_key
SELECT position, turn_id, session_id, tree_id, parent_id, is_seen, is_abandoned
FROM turn_branches
WHERE user_id = :user_id AND key = :key AND NOT is_left_out AND :session_id IN ('', session_id)
ORDER BY position DESC LIMIT :candidates_max;

-- name: position_of_turn
SELECT position, turn_id, session_id, tree_id, parent_id, is_seen, is_abandoned
FROM turn_branches
WHERE turn_id = :turn_id AND user_id = :user_id AND NOT is_left_out AND :session_id IN ('', session_id);

-- name: answer_of
SELECT answer FROM turns WHERE id = :turn_id;

-- name: child_of
SELECT 1 FROM turn_branches WHERE parent_id = :turn_id AND tree_id = :tree_id;

-- name: insert_position
INSERT INTO turn_branches (turn_id, user_id, session_id, key, tree_id, parent_id, is_seen)
VALUES (:id, :user_id, :session_id, :key, :tree_id, :parent_id, :is_seen) ON CONFLICT DO NOTHING;

-- name: number_of_position
SELECT position FROM turn_branches WHERE turn_id = :id;

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
