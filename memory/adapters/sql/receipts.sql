-- name: last_positions
SELECT (SELECT max(position) FROM receipts), (SELECT max(ordinal) FROM receipts WHERE user_id = :user_id);

-- name: insert_receipt
INSERT INTO receipts (position, user_id, ordinal, id, kept_at, body)
VALUES (:position, :user_id, :ordinal, :id, :at, :body)
ON CONFLICT DO NOTHING;

-- name: delete_up_to
DELETE FROM receipts WHERE position <= :position;

-- name: delete_of_user_up_to
DELETE FROM receipts WHERE user_id = :user_id AND ordinal <= :ordinal AND length(body) > 0;

-- name: delete_expired
DELETE
FROM receipts
WHERE position IN (SELECT position FROM receipts WHERE kept_at <= :expired LIMIT :expired_at_once);

-- name: unexpired_body
SELECT body FROM receipts WHERE user_id = :user_id AND id = :receipt_id AND kept_at > :expired;

-- name: body_of
SELECT body FROM receipts WHERE user_id = :user_id AND id = :receipt_id;

-- name: set_body
UPDATE receipts SET body = :body WHERE user_id = :user_id AND id = :receipt_id;

-- name: delete_receipts
DELETE FROM receipts WHERE user_id = :user_id;

-- name: insert_mark
INSERT INTO receipts (position, user_id, ordinal, id, kept_at, body)
SELECT coalesce(max(position), 0) + 1, :user_id, 0, :no_id, :now, ''
FROM receipts;

-- name: bodies_of_user
SELECT position, body FROM receipts WHERE user_id = :user_id AND length(body) > 0;

-- name: delete_at
DELETE FROM receipts WHERE position = :one;

-- name: delete_receipt
DELETE FROM receipts WHERE user_id = :user_id AND id = :mark;

-- name: insert_project_mark
INSERT INTO receipts (position, user_id, ordinal, id, kept_at, body)
SELECT (SELECT coalesce(max(position), 0) + 1 FROM receipts), :user_id, least(0, coalesce(min(ordinal), 0)) - 1,
    :mark, :now, ''
FROM receipts WHERE user_id = :user_id;

-- name: erased_later
SELECT 1 FROM receipts WHERE user_id = :user_id AND id IN (:mark, :project_mark) AND kept_at > :at;

-- name: receipts_of_user
SELECT ordinal, body FROM receipts
WHERE user_id = :user_id AND ordinal < :before AND length(body) > 0 AND kept_at > :expired
ORDER BY ordinal DESC LIMIT :limit;

-- name: receipts_of_all
SELECT position, body FROM receipts
WHERE position < :before AND length(body) > 0 AND kept_at > :expired
ORDER BY position DESC LIMIT :limit;

-- name: turns_with_receipts
SELECT seq, user_id, session_id, said_at, answer, receipt_id FROM turns
WHERE seq > :after AND said_at >= :since AND length(receipt_id) > 0 ORDER BY seq LIMIT :page_turns;

-- name: body_left
SELECT body FROM receipts WHERE user_id = :user_id AND id = :receipt_id AND length(body) > 0;
