-- name: turns_with_receipts
SELECT seq, user_id, session_id, said_at, answer, receipt_id FROM turns
WHERE seq > :after AND said_at >= :since AND length(receipt_id) > 0 ORDER BY seq LIMIT :page_turns;

-- name: body_of
SELECT body FROM receipts WHERE user_id = :user_id AND id = :receipt_id AND length(body) > 0;
