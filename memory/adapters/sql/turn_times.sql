-- name: latest_opening
SELECT max(opened_at) FROM turns;
