SELECT t // 86400000000 * 86400000000, (t // 86400000000 + 1) * 86400000000, auction, count(*),
  count(*) FILTER (price < 10000),
  count(*) FILTER (price >= 10000 AND price < 1000000),
  count(*) FILTER (price >= 1000000),
  min(price), max(price), avg(price), sum(price)
FROM bid GROUP BY t // 86400000000, auction
