-- name: revision_after_erasure
SELECT revision FROM erased_users WHERE user_hash = :user_hash;

-- name: delete_untouched
DELETE
FROM users
WHERE user_id = :user_id AND revision = :revision AND known_since = :revision AND lock_token IS NULL;

-- name: times_erased
SELECT times FROM erased_users WHERE user_hash = :user_hash;

-- name: erased_since
SELECT 1 FROM erased_users WHERE user_hash = :user_hash AND erased_at >= :at;

-- name: held_revision
SELECT revision FROM users WHERE user_id = :user_id AND lock_token = :token;

-- name: put_epoch
INSERT INTO erased_users (user_hash, erased_at, times, revision)
VALUES (:user_hash, :now, 1, :revision)
ON CONFLICT (user_hash) DO UPDATE
SET erased_at = greatest(erased_users.erased_at, excluded.erased_at), times = erased_users.times + 1,
    revision = greatest(erased_users.revision, excluded.revision);

-- name: delete_receipts
DELETE FROM receipts WHERE user_id = :user_id AND kept_at <= :now;

-- name: delete_links
DELETE FROM chains WHERE user_id = :user_id AND kept_at <= :now;

-- name: delete_profiles
DELETE FROM profiles WHERE user_id = :user_id AND updated_at <= :now;

-- name: delete_from_users
DELETE FROM users WHERE user_id = :user_id;

-- name: delete_from_changes
DELETE FROM changes WHERE user_id = :user_id;

-- name: delete_from_forgotten
DELETE FROM forgotten WHERE user_id = :user_id;

-- name: delete_from_uses
DELETE FROM uses WHERE user_id = :user_id;

-- name: delete_from_notes_dropped
DELETE FROM notes_dropped WHERE user_id = :user_id;

-- name: delete_from_compacted_states_dropped
DELETE FROM compacted_states_dropped WHERE user_id = :user_id;

-- name: delete_from_profiles_built
DELETE FROM profiles_built WHERE user_id = :user_id;

-- name: delete_from_stale_profiles
DELETE FROM stale_profiles WHERE user_id = :user_id;

-- name: delete_from_rounds
DELETE FROM rounds WHERE user_id = :user_id;

-- name: delete_from_removed_words
DELETE FROM removed_words WHERE user_id = :user_id;

-- name: opted_out_at
SELECT opted_out_at FROM opted_out_users WHERE user_hash = :user;

-- name: insert_opt_out
INSERT INTO opted_out_users (user_hash, opted_out_at) VALUES (:user, :at) ON CONFLICT DO NOTHING;

-- name: delete_opt_out
DELETE FROM opted_out_users WHERE user_hash = :user;

-- name: count_opt_outs
SELECT count(*) FROM opted_out_users;
