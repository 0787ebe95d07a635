SELECT DISTINCT p.t // 10000000 * 10000000, (p.t // 10000000 + 1) * 10000000, p.id, name
FROM person p JOIN auction a ON a.seller = p.id AND a.t // 10000000 = p.t // 10000000
