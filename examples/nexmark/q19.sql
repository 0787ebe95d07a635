SELECT t // 86400000000 * 86400000000, (t // 86400000000 + 1) * 86400000000, auction, bidder, price, extra,
  rank() OVER (PARTITION BY t // 86400000000, auction ORDER BY price DESC) - 1 AS higher
FROM bid QUALIFY higher < 10
