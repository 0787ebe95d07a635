WITH timed AS (SELECT *, t // 3600000000 % 24 AS hour, price * 0.908::DOUBLE AS euros FROM bid)
SELECT t, t, auction, bidder, euros,
  CASE WHEN hour BETWEEN 8 AND 18 THEN 'day' WHEN hour <= 6 OR hour >= 20 THEN 'night' ELSE 'other' END, extra
FROM timed WHERE euros > 1000000 AND euros < 50000000
