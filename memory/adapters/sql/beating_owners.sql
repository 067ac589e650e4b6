-- name: enter
INSERT INTO owners (name, beat, introduction) VALUES (:name, 0, :introduction) ON CONFLICT DO NOTHING;

-- name: beat
UPDATE owners SET beat = beat + 1 WHERE name = :name;

-- name: leave
DELETE FROM owners WHERE name = :name;

-- name: beats
SELECT name, beat FROM owners;

-- name: owner
SELECT 1 FROM owners WHERE name = :name;

-- name: introductions
SELECT name, introduction FROM owners WHERE name != :name ORDER BY name;
