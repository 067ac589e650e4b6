-- name: snapshot_of
SELECT snapshot, used_at FROM snapshots WHERE user_hash = :user_hash;

-- name: put_snapshot
INSERT INTO snapshots (user_hash, snapshot, size, used_at) VALUES (:user_hash, :snapshot, :size, :now)
ON CONFLICT (user_hash) DO UPDATE
SET snapshot = excluded.snapshot, size = excluded.size, used_at = excluded.used_at;

-- name: note_use
UPDATE snapshots SET used_at = :now WHERE user_hash = :user_hash;

-- name: delete_least_used
-- Those beyond the limit, counted from the one that was used last.
DELETE FROM snapshots WHERE user_hash IN (
    SELECT user_hash FROM (
        SELECT user_hash, sum(size) OVER (ORDER BY used_at DESC, user_hash) AS total FROM snapshots
    ) AS counted WHERE total > :bytes_max
);

-- name: delete_snapshot
DELETE FROM snapshots WHERE user_hash = :user_hash;

-- name: delete_snapshots
DELETE FROM snapshots;
