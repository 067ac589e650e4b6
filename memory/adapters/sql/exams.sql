-- name: delete_beyond_limit
DELETE FROM exam_results WHERE (model, server, version) IN (
    SELECT model, server, version FROM exam_results ORDER BY sat_at DESC, model LIMIT 1000000000 OFFSET :results_max
);

-- name: result_of
SELECT passed, score, failures FROM exam_results
WHERE (model, server, version) = (:model, :server, :version)
  AND sat_at > :now - CASE WHEN passed THEN :passed_seconds_max ELSE :failed_seconds_max END;

-- name: put_result
INSERT INTO exam_results (model, server, version, passed, score, failures, sat_at)
VALUES (:model, :server, :version, :passed, :score, :failures, :now)
ON CONFLICT (model, server, version) DO UPDATE
SET passed = excluded.passed, score = excluded.score, failures = excluded.failures, sat_at = excluded.sat_at;
