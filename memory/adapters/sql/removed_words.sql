-- name: user_with_removed
SELECT user_id FROM removed_words WHERE user_id NOT IN (SELECT value FROM json_each(:without)) LIMIT 1;

-- name: removed_of_user
SELECT turn_id FROM removed_words WHERE user_id = :user_id LIMIT :limit;

-- name: delete_removed
DELETE FROM removed_words WHERE user_id = :user_id AND turn_id IN (SELECT value FROM json_each(:turn_ids));
