-- name: placement_of
SELECT placement FROM model_traits WHERE model = :model AND learnt_at > :after;

-- name: put_placement
INSERT INTO model_traits (model, placement, learnt_at) VALUES (:model, :placement, :now)
ON CONFLICT (model) DO UPDATE SET placement = excluded.placement, learnt_at = excluded.learnt_at;

-- name: delete_beyond_limit
DELETE
FROM model_traits
WHERE model IN (SELECT model FROM model_traits ORDER BY learnt_at DESC, model LIMIT 1000000000 OFFSET :models_max);
