WITH final AS (
  SELECT a.t, a.expires, a.id, category, max(price) AS price
  FROM auction a JOIN bid b ON b.auction = a.id AND b.t BETWEEN a.t AND a.expires
  GROUP BY a.t, a.expires, a.id, category
)
SELECT DISTINCT f.expires - 600000000, f.expires, f.category, (
  SELECT avg(g.price) FROM final g
  WHERE g.category = f.category AND g.t >= f.expires - 600000000 AND g.expires <= f.expires
)
FROM final f
