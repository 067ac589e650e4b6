

-- name: insert_turn
INSERT INTO turns (id, user_id, project_id, session_id, agent_id, trace_id, receipt_id, model, said_at, opened_at,
    finished_at, answered_at, status, stage, owner, messages, answer, utc_offset)
VALUES (:id, :user_id, :project_id, :session_id, :agent_id, :trace_id, :receipt_id, :model, :said_at, :opened_at,
    :finished_at, :answered_at, :status, :stage, :owner, :messages, :answer, :utc_offset)
ON CONFLICT DO NOTHING RETURNING seq;
