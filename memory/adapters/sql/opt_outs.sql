-- name: opted_out_at
SELECT opted_out_at FROM opted_out_users WHERE user_hash = :user;

-- name: insert_opt_out
INSERT INTO opted_out_users (user_hash, opted_out_at) VALUES (:user, :at) ON CONFLICT DO NOTHING;

-- name: delete_opt_out
DELETE FROM opted_out_users WHERE user_hash = :user;

-- name: count_opt_outs
SELECT count(*) FROM opted_out_users;
