-- name: placement_of
SELECT placement FROM model_traits WHERE model = :model AND learnt_at > :after;

-- name: put_placement
INSERT INTO model_traits (model, placement, learnt_at) VALUES (:model, :placement, :now)
ON CONFLICT (model) DO UPDATE SET placement = excluded.placement, learnt_at = excluded.learnt_at;

-- name: delete_oldest_models
DELETE
FROM model_traits
WHERE model IN (SELECT model FROM model_traits ORDER BY learnt_at DESC, model LIMIT 1000000000 OFFSET :models_max);

-- name: delete_oldest_results
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
