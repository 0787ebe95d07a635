WITH hop AS (SELECT *, (t // 2000000 + 1 + k) * 2000000 AS stop FROM bid, generate_series(0, 4) AS s(k)),
  counted AS (SELECT stop, auction, count(*) AS n FROM hop GROUP BY stop, auction)
SELECT stop - 10000000, stop, auction, n
FROM counted QUALIFY n = max(n) OVER (PARTITION BY stop)
