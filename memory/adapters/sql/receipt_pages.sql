-- name: receipts_of_user
SELECT ordinal, body FROM receipts
WHERE user_id = :user_id AND ordinal < :before AND length(body) > 0 AND kept_at > :expired
ORDER BY ordinal DESC LIMIT :limit;

-- name: receipts_of_all
SELECT position, body FROM receipts
WHERE position < :before AND length(body) > 0 AND kept_at > :expired
ORDER BY position DESC LIMIT :limit;
