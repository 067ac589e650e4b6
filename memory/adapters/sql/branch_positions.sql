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
