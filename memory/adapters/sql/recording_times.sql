-- name: recorders
SELECT owner, last_at FROM recorders;

-- name: recorder
SELECT 1 FROM recorders WHERE owner = :owner;

-- name: delete_recorder
DELETE FROM recorders WHERE owner = :owner;

-- name: put_recorder
INSERT INTO recorders (owner, last_at) VALUES (:owner, :at)
ON CONFLICT (owner) DO UPDATE SET last_at = greatest(recorders.last_at, excluded.last_at);

-- name: insert_gap
INSERT INTO recording_gaps (began_at, ended_at, is_loss) VALUES (:began_at, :ended_at, :is_loss) RETURNING position;

-- name: delete_up_to
DELETE FROM recording_gaps WHERE position <= :position;

-- name: first_gap_after
SELECT began_at FROM recording_gaps WHERE ended_at > :at ORDER BY ended_at LIMIT 1;

-- name: first_long_gap
SELECT began_at
FROM recording_gaps
WHERE ended_at >= :since AND ended_at - began_at >= CASE WHEN is_loss THEN :after_loss ELSE :seconds END
ORDER BY ended_at LIMIT 1;

-- name: latest_opening
SELECT max(opened_at) FROM turns;
