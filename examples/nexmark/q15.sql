WITH ranked AS (
  SELECT *, 'all' AS rank FROM bid
  UNION ALL
  SELECT *, CASE WHEN price < 10000 THEN 'low' WHEN price < 1000000 THEN 'middle' ELSE 'high' END FROM bid
)
SELECT t // 86400000000 * 86400000000, (t // 86400000000 + 1) * 86400000000,
  rank, count(*), count(DISTINCT bidder), count(DISTINCT auction)
FROM ranked GROUP BY t // 86400000000, rank
