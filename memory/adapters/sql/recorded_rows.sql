-- name: message_at
SELECT id, conversation_id, source_type, source, target_type, target, direction, content, at, trace_id, project_id,
    turn_id, visibility, seq, ordinal, position
FROM messages
WHERE position = :row;

-- name: turn_at
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE seq = :row;

-- name: message_by_id
SELECT id, conversation_id, source_type, source, target_type, target, direction, content, at, trace_id, project_id,
    turn_id, visibility, seq, ordinal, position
FROM messages
WHERE user_id = :user_id AND id = :message_id;

-- name: turn_by_id
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE user_id = :user_id AND id = :turn_id;

-- name: branches_of_session
SELECT id, coalesce(parent_id, ''), coalesce(is_abandoned, FALSE), said_at, seq
FROM turns LEFT JOIN turn_branches ON turn_id = id
WHERE turns.user_id = :user_id AND turns.session_id = :conversation_id ORDER BY said_at, seq;

-- name: turns_of_session
SELECT id FROM turns WHERE user_id = :user_id AND session_id = :conversation_id ORDER BY seq;

-- name: receipts_of_session
SELECT id, receipt_id
FROM turns
WHERE user_id = :user_id AND session_id = :conversation_id AND length(receipt_id) > 0
ORDER BY seq DESC LIMIT :limit;

-- name: turn_of_receipt
SELECT seq, id, user_id, project_id, session_id, agent_id, said_at, messages, status, answer, answered_at, utc_offset, model, trace_id,
    receipt_id
FROM turns
WHERE user_id = :user_id AND receipt_id = :receipt_id
ORDER BY seq DESC LIMIT 1;

-- name: sessions_of_user
SELECT id, min(first_at), max(last_at), sum(turns), sum(added), sum(opened), sum(unlearnt) FROM (
    SELECT session_id AS id, said_at AS first_at, greatest(said_at, coalesce(answered_at, said_at)) AS last_at,
        1 AS turns, 0 AS added, CASE WHEN status = 'opened' THEN 1 ELSE 0 END AS opened,
        CASE WHEN stage IN ('open', 'ready', 'window') THEN 1 ELSE 0 END AS unlearnt
    FROM turns WHERE user_id = :user AND (CAST(:session AS TEXT) IS NULL OR session_id = :session)
    UNION ALL
    SELECT conversation_id, at, at, 0, CASE WHEN turn_id = '' THEN 1 ELSE 0 END, 0, 0
    FROM messages WHERE user_id = :user AND (CAST(:session AS TEXT) IS NULL OR conversation_id = :session)
) AS parts
GROUP BY id;

-- name: agents_of_turns
SELECT DISTINCT session_id, agent_id FROM turns
WHERE user_id = :user AND agent_id != '' AND (CAST(:session AS TEXT) IS NULL OR session_id = :session);

-- name: agents_of_messages
SELECT conversation_id, source FROM messages
WHERE user_id = :user AND source_type = 'agent' AND (CAST(:session AS TEXT) IS NULL OR conversation_id = :session)
UNION
SELECT conversation_id, target FROM messages
WHERE user_id = :user AND target_type = 'agent' AND (CAST(:session AS TEXT) IS NULL OR conversation_id = :session);

-- name: parts_after
-- One row for each part of a turn and each added message, without texts. A part "said" holds several messages.
SELECT at, seq, ordinal, part, number, size FROM (
    SELECT said_at AS at, seq, CAST(:said_ordinal AS BIGINT) AS ordinal, 'said' AS part, seq AS number,
        length(messages) AS size
    FROM turns
    WHERE user_id = :user AND :conversation IN ('', session_id) AND :agent IN ('', agent_id)
      AND (length(:trace) = 0 OR trace_id = :trace)
      AND NOT (:only_live AND EXISTS (SELECT 1 FROM turn_branches WHERE turn_id = turns.id AND is_abandoned))
    UNION ALL
    SELECT coalesce(answered_at, said_at), seq, CAST(:answer_ordinal AS BIGINT), 'answer', seq, length(answer)
    FROM turns
    WHERE user_id = :user AND :conversation IN ('', session_id) AND :agent IN ('', agent_id)
      AND (length(:trace) = 0 OR trace_id = :trace) AND length(answer) > 0
      AND NOT (:only_live AND EXISTS (SELECT 1 FROM turn_branches WHERE turn_id = turns.id AND is_abandoned))
    UNION ALL
    SELECT at, seq, CASE WHEN seq = :added_seq THEN position ELSE ordinal END, 'message', position, length(content)
    FROM messages
    WHERE user_id = :user AND :conversation IN ('', conversation_id) AND (length(:trace) = 0 OR trace_id = :trace)
      AND NOT (
          :only_live
          AND EXISTS (SELECT 1 FROM turn_branches WHERE turn_branches.turn_id = messages.turn_id AND is_abandoned)
      )
) AS parts
WHERE (at, seq, ordinal) > (:after_at, :after_seq, :after_ordinal)
ORDER BY at, seq, ordinal LIMIT :limit;
