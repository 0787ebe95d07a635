SELECT DISTINCT p.t, a.t, name, city, state, a.id
FROM person p JOIN auction a ON a.seller = p.id AND a.t - p.t BETWEEN 0 AND 3600000000
WHERE category = 10 AND state IN ('OR', 'ID', 'CA')
