-- name: recorded_turn
SELECT 1 FROM known_exchanges WHERE words = :digest AND user_id = :user_id AND turn_id = :id;

-- name: left_out_exchange
SELECT 1 FROM known_exchanges WHERE words = :digest AND user_id = :user_id AND turn_id = '' AND answer = :answer;

-- name: insert_exchange
INSERT INTO known_exchanges (user_id, words, turn_id, answer) VALUES (:user_id, :digest, :turn_id, :answer)
RETURNING position;

-- name: delete_beyond_limit
DELETE
FROM known_exchanges
WHERE user_id = :user_id AND position <=
    (SELECT position FROM known_exchanges WHERE user_id = :user_id ORDER BY position DESC LIMIT 1 OFFSET :digests_max);

-- name: exchanges_of_user
SELECT known_exchanges.turn_id, known_exchanges.answer, turns.answer
FROM known_exchanges LEFT JOIN turns ON turns.id = known_exchanges.turn_id AND known_exchanges.turn_id != ''
WHERE words = :digest AND known_exchanges.user_id = :user_id LIMIT :looks_max;

-- name: turn_without_position
SELECT id FROM known_exchanges JOIN turns ON turns.id = known_exchanges.turn_id
WHERE words = :digest AND known_exchanges.user_id = :user_id AND turns.user_id = :user_id
    AND session_id = :session_id
  AND NOT EXISTS (SELECT 1 FROM turn_branches WHERE turn_branches.turn_id = id)
ORDER BY seq DESC LIMIT 1;

-- name: digest_key
SELECT key FROM digest_keys;

-- name: delete_positions
DELETE FROM turn_branches WHERE user_id = :user_id;

-- name: delete_exchanges
DELETE FROM known_exchanges WHERE user_id = :user_id;

-- name: erase_conversations
INSERT INTO erased_conversations VALUES (:user_hash) ON CONFLICT DO NOTHING;
